#!/usr/bin/env bash
# Score translations of newstest2014: sacreBLEU, tokenised BLEU, compound-split BLEU.
#
#   [VARIABLE=value ...] ./score.sh [TRANSLATION ...]
#
# Without an argument it scores what translate.sh wrote; with several, each is compared with the
# first.
#
# WORK      the folder of prepare.sh (wmt14_en_de)
# MODEL     base or big (base)
# SAVE_DIR  the folder of the checkpoints ($WORK/$MODEL)
set -euo pipefail

WORK=${WORK:-wmt14_en_de}
MODEL=${MODEL:-base}
SAVE_DIR=${SAVE_DIR:-$WORK/$MODEL}

stop() {
    echo "score.sh: $1" >&2
    exit 1
}

[[ $MODEL =~ ^(base|big)$ ]] || stop "MODEL must be base or big, but is $MODEL"
[ $# -gt 0 ] || set -- "$SAVE_DIR/test.de"

fairseq-rope score --reference "$WORK/text/test.de" --source-lang en --target-lang de "$@"
