#!/usr/bin/env bash
# Average the weights of the last checkpoints of train.sh.
#
#   [VARIABLE=value ...] ./average.sh
#
# WORK      the folder of prepare.sh (wmt14_en_de)
# MODEL     base or big (base)
# SAVE_DIR  the folder of checkpoints ($WORK/$MODEL)
# LAST      how many to average (5)
set -euo pipefail

MODEL=${MODEL:-base}
SAVE_DIR=${SAVE_DIR:-${WORK:-wmt14_en_de}/$MODEL}

stop() {
    echo "average.sh: $1" >&2
    exit 1
}

[[ $MODEL =~ ^(base|big)$ ]] || stop "MODEL must be base or big, but is $MODEL"

fairseq-rope average --inputs "$SAVE_DIR" --num-update-checkpoints "${LAST:-5}" \
    --output "$SAVE_DIR/averaged.pt"
