"""People's part: what is unsure, invalid or disputed, asked once and answered for good."""

from pipeline.review.desk import Correction, Desk, ReviewRefused

__all__ = ["Correction", "Desk", "ReviewRefused"]
