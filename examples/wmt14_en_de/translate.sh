#!/usr/bin/env bash
# Translate text, line by line: as many lines out as in, in the same order.
#
#   [VARIABLE=value ...] ./translate.sh [INPUT [OUTPUT [options of fairseq-interactive]]]
#
# INPUT and OUTPUT are plain text (newstest2014 and $SAVE_DIR/test.de). A blank line stays blank;
# lines that are too long for the model become blank and are counted.
#
# WORK        the folder of prepare.sh (wmt14_en_de)
# MODEL       base or big (base)
# SAVE_DIR    the folder of the checkpoints ($WORK/$MODEL)
# CHECKPOINT  what translates ($SAVE_DIR/averaged.pt)
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=${WORK:-wmt14_en_de}
MODEL=${MODEL:-base}
SAVE_DIR=${SAVE_DIR:-$WORK/$MODEL}
CHECKPOINT=${CHECKPOINT:-$SAVE_DIR/averaged.pt}
INPUT=${1:-$WORK/text/test.en}
OUTPUT=${2:-$SAVE_DIR/test.de}

stop() {
    echo "translate.sh: $1" >&2
    exit 1
}

setting() {  # setting NAME, as it was for prepare.sh
    sed -nE "s/(.* )?$1=([^ ]*).*/\2/p" "$WORK/settings"
}

[[ $MODEL =~ ^(base|big)$ ]] || stop "MODEL must be base or big, but is $MODEL"
[ -e "$WORK/data/dict.en.txt" ] || stop "$WORK/data is not there; run prepare.sh first"
[ -e "$WORK/settings" ] || stop "$WORK/settings, which prepare.sh wrote, is not there"
SEGMENTER=$(setting SEGMENTER) THRESHOLD=$(setting THRESHOLD) SPLIT_HYPHENS=$(setting SPLIT_HYPHENS)
[ "$SEGMENTER" ] && [ "$THRESHOLD" ] && [ "$SPLIT_HYPHENS" ] ||
    stop "$WORK/settings is not what prepare.sh wrote: $(cat "$WORK/settings")"

hyphens=()
[ "$SPLIT_HYPHENS" = no ] || hyphens=(--split-hyphens)
vocabulary=()
[ "$SEGMENTER" = sentencepiece ] ||
    vocabulary=(--vocabulary "$WORK/vocabulary.en" --vocabulary-threshold "$THRESHOLD")

# Only subword-nmt works on Moses's tokens.
tokenise() {
    if [ "$SEGMENTER" = subword-nmt ]; then
        fairseq-rope tokenise --language en "${hyphens[@]}"
    else
        cat
    fi
}

detokenise() {
    if [ "$SEGMENTER" = subword-nmt ]; then fairseq-rope detokenise --language de; else cat; fi
}

pieces=$OUTPUT.pieces generated=$OUTPUT.generated
fairseq-rope normalise --language en "$INPUT" | tokenise |
    fairseq-rope segment apply --segmenter "$SEGMENTER" --model "$WORK/bpe.model" \
        "${vocabulary[@]}" - "$pieces"

sed '/^$/d' "$pieces" |
    fairseq-interactive "$WORK/data" --source-lang en --target-lang de \
        --user-dir "$HERE/../../fairseq_rope" --path "$CHECKPOINT" --beam 4 --lenpen 0.6 \
        --max-len-a 1 --max-len-b 50 --buffer-size 5000 --max-tokens 8000 \
        --skip-invalid-size-inputs-valid-test "${@:3}" > "$generated"

fairseq-rope hypotheses --source "$pieces" "$generated" |
    fairseq-rope segment undo --segmenter "$SEGMENTER" | detokenise > "$OUTPUT.part"
mv "$OUTPUT.part" "$OUTPUT"
