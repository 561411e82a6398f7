"""Tuning the reader: synthetic lines, a training run on the CPU, and the adapter that comes out of it.

`formats/` holds how kinds of systems write their lines, `generator` fills them in, `schemas` asks for
fields and labels under ever other names, `samples` turns a line into the very prompt the reader uses,
`network` and `train` tune a low-rank adapter on it, `card` says what it was made of. Only `andon model
tune` needs torch.
"""
