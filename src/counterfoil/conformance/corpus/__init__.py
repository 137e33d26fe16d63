"""The shipped corpora: their cases as code (``core``, ``hard``) and, beside it, as files.

The folders ``vectors-*`` are written by ``counterfoil.conformance.generate`` and by nothing else.
"""
