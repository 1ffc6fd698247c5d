"""``python -m fairseq_rope.cli`` is the ``fairseq-rope`` command."""

import sys

from fairseq_rope.cli.main import main

sys.exit(main())
