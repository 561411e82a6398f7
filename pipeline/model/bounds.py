"""What a count of errors proves: exact bounds for a share, from the binomial distribution alone.

Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial"
(Biometrika 26, 1934). Exact means: never surer than stated, whatever the true share and however few the
trials. The trials must be independent and alike; lines drawn at random from one source are.
"""

from __future__ import annotations

import math

_HALVINGS = 60  # a bisection of [0, 1] this often ends at the spacing of doubles
_TRIALS_MAX = 1 << 40  # nobody labels more lines; beyond it the answer is "never"


def tail(errors: int, trials: int, rate: float) -> float:
    """P(at most `errors` in `trials`) when each is an error with probability `rate`.

    It is also the p-value of "the true rate is `rate` or more". Raises ValueError for impossible counts.
    """
    _possible(errors, trials)
    if errors == trials or rate <= 0.0:
        return 1.0
    if rate >= 1.0:
        return 0.0
    if 2 * errors <= trials:
        return min(1.0, _between(0, errors, trials, rate))
    return max(0.0, 1.0 - _between(errors + 1, trials, trials, rate))


def _between(first: int, last: int, trials: int, rate: float) -> float:
    """P(`first` to `last` errors). In logarithms: the binomial coefficients of large counts overflow."""
    whole, log_rate, log_rest = math.lgamma(trials + 1), math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(
            whole - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * log_rate + (trials - k) * log_rest
        )
        for k in range(first, last + 1)
    )


def upper(errors: int, trials: int, confidence: float) -> float:
    """The one-sided Clopper-Pearson bound: with `confidence`, the true rate is not above it.

    1.0 when there was no trial. Raises ValueError for impossible counts.
    """
    _possible(errors, trials)
    if errors == trials:
        return 1.0
    doubt, low, high = 1.0 - confidence, errors / trials, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if tail(errors, trials, middle) > doubt:
            low = middle
        else:
            high = middle
    return high


def needed(rate: float, confidence: float, errors: int = 0) -> int | None:
    """The fewest trials in which `errors` still prove, with `confidence`, a rate of at most `rate`.

    Without an error it is ln(1 - confidence) / ln(1 - rate), rounded up: 299 for 1 % at 95 %. None when no
    number that anybody could collect is enough.
    """
    doubt, high = 1.0 - confidence, errors + 1
    while tail(errors, high, rate) > doubt:
        high *= 2
        if high > _TRIALS_MAX:
            return None
    low = max(errors, high // 2)  # not enough, or no trial beyond the errors themselves
    while high - low > 1:
        middle = (low + high) // 2
        if tail(errors, middle, rate) > doubt:
            low = middle
        else:
            high = middle
    return high


def _possible(errors: int, trials: int) -> None:
    if not 0 <= errors <= trials:
        raise ValueError(f"{errors} errors in {trials} trials is impossible")
