"""Breaks the real program at chosen and at random places, and sees that nothing is lost and nothing doubled.

`python -m tests.breaking` prints the report; `--replay` repeats what one line of it says. The parts:
`life` is what is broken (days over the core, with a played model and a played clock, in a process of its
own); `fork` starts such processes in a millisecond; `faults` lets their calls to the system fail; `kills`
makes and checks the cases of `cases`; `power` has disks whose power can be cut. The same is done to
`chatproc once`, with a model over HTTP, in `tests/test_kills.py`.
"""
