"""``python -m fairseq_rope.cli`` is the ``fairseq-rope`` command."""

import sys

from .main import main

sys.exit(main())
