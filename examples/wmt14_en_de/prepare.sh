#!/usr/bin/env bash
# From the archives of WMT14 English-German to data that fairseq-train reads.
#
#   [VARIABLE=value ...] ./prepare.sh
#
# WORK           folder for everything that is written (wmt14_en_de)
# WMT_SOURCE     a folder, or its file:// URL, that holds the five archives (none: download them)
# SEGMENTER      subword-nmt, after Moses's tokeniser, or sentencepiece, on plain text (subword-nmt)
# SIZE           merges of subword-nmt or pieces of sentencepiece (37000)
# THRESHOLD      subword-nmt uses pieces seen at least so often in the language (50)
# SPLIT_HYPHENS  yes: the tokeniser writes well-known as well @-@ known (no)
# DEDUP          yes: drop repeated sentence pairs (no)
# WORKERS        processes of a step (one for each core)
#
# Stopped at any point, it goes on at the same step when it is run again.
set -euo pipefail

WORK=${WORK:-wmt14_en_de}
WMT_SOURCE=${WMT_SOURCE:-}
SEGMENTER=${SEGMENTER:-subword-nmt}
SIZE=${SIZE:-37000}
THRESHOLD=${THRESHOLD:-50}
SPLIT_HYPHENS=${SPLIT_HYPHENS:-no}
DEDUP=${DEDUP:-no}
WORKERS=${WORKERS:-$(nproc)}

ARCHIVES=(
    https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz
    https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz
    https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz
    https://www.statmt.org/wmt14/dev.tgz
    https://www.statmt.org/wmt14/test-full.tgz
)
CORPORA=(training/europarl-v7.de-en commoncrawl.de-en training/news-commentary-v9.de-en)
VALID=(dev/newstest2013-src.en.sgm dev/newstest2013-ref.de.sgm)
TEST=(test-full/newstest2014-deen-src.en.sgm test-full/newstest2014-deen-ref.de.sgm)
TEST_LINES=3003

stop() {
    echo "prepare.sh: $1" >&2
    exit 1
}

# Run a command unless it was done before; after one that was not, all are done again.
current= again=
step() {
    current=$1
    shift
    if [ -z "$again" ] && [ -e "$WORK/done/$current" ]; then
        echo "== $current: done before"
    else
        echo "== $current"
        again=yes
        rm -f "$WORK/done/$current"
        "$@"
        touch "$WORK/done/$current"
    fi
}

on_exit() {
    [ "$1" -eq 0 ] || [ -z "$current" ] ||
        echo "prepare.sh: stopped at '$current'; run it again to go on there" >&2
}
trap 'on_exit $?' EXIT

unpack() {  # unpack ARCHIVE MEMBER...
    local archive=$WORK/archives/$1
    tar -xzf "$archive" -C "$WORK/raw" "${@:2}" && return
    tar -xzOf "$archive" "${@:2}" &> /dev/null ||
        stop "$archive is damaged or another archive; delete it, its line in\
 $WORK/archives/sha256.txt and $WORK/done/fetch $1"
    stop "$archive is whole; tar says above what failed"
}

read_sgm() {  # read_sgm LANGUAGE FILE PART
    fairseq-rope sgm --language "$1" "$WORK/raw/$2" "$WORK/text/$3.$1" \
        --report "$WORK/report" --name "$3.$1 read"
}

normalise() {  # normalise LANGUAGE INPUT NAME
    fairseq-rope normalise --language "$1" --workers "$WORKERS" "$2" "$WORK/normal/$3.$1" \
        --report "$WORK/report" --name "$3.$1 normalise"
}

normalise_both() {  # normalise_both NAME INPUT
    step "normalise $1.en" normalise en "$2.en" "$1"
    step "normalise $1.de" normalise de "$2.de" "$1"
    step "check $1" fairseq-rope check-data "$WORK/normal/$1".{en,de} --languages en de
}

tokenise() {  # tokenise PART LANGUAGE, from one file or more on standard input
    local options=()
    [ "$SPLIT_HYPHENS" = no ] || options=(--split-hyphens)
    if [ "$SEGMENTER" = subword-nmt ]; then
        fairseq-rope tokenise --language "$2" --workers "$WORKERS" "${options[@]}" \
            - "$WORK/tokens/$1.$2" --report "$WORK/report" --name "$1.$2 tokenise"
    else
        cat > "$WORK/tokens/$1.$2"
    fi
}

tokenise_train() {  # tokenise_train LANGUAGE
    local corpus files=()
    for corpus in "${CORPORA[@]}"; do files+=("$WORK/normal/$(basename "$corpus").$1"); done
    cat "${files[@]}" | tokenise train "$1"
}

learn() {
    local options=()
    [ "$SEGMENTER" = sentencepiece ] || options=(--vocabularies "$WORK"/vocabulary.{en,de})
    fairseq-rope segment learn --segmenter "$SEGMENTER" --size "$SIZE" --model "$WORK/bpe.model" \
        "$train.en" "$train.de" "${options[@]}"
}

segment() {  # segment PART LANGUAGE INPUT
    local options=()
    [ "$SEGMENTER" = sentencepiece ] ||
        options=(--vocabulary "$WORK/vocabulary.$2" --vocabulary-threshold "$THRESHOLD")
    fairseq-rope segment apply --segmenter "$SEGMENTER" --model "$WORK/bpe.model" \
        "${options[@]}" --workers "$WORKERS" "$3" "$WORK/pieces/$1.$2" \
        --report "$WORK/report" --name "$1.$2 segment"
}

binarise() {
    rm -rf "$WORK/data" "$WORK/data.part"
    fairseq-preprocess --source-lang en --target-lang de --joined-dictionary \
        --trainpref "$WORK/pieces/train" --validpref "$WORK/pieces/valid" \
        --testpref "$WORK/pieces/test" --destdir "$WORK/data.part" --workers "$WORKERS"
    mv "$WORK/data.part" "$WORK/data"
}

[[ $SEGMENTER =~ ^(subword-nmt|sentencepiece)$ ]] ||
    stop "SEGMENTER must be subword-nmt or sentencepiece, but is $SEGMENTER"
for name in SIZE THRESHOLD WORKERS; do
    [[ ${!name} =~ ^[1-9][0-9]{0,8}$ ]] ||
        stop "$name must be a whole number above 0, but is ${!name}"
done
for name in SPLIT_HYPHENS DEDUP; do
    [[ ${!name} =~ ^(yes|no)$ ]] || stop "$name must be yes or no, but is ${!name}"
done

settings="SEGMENTER=$SEGMENTER SIZE=$SIZE THRESHOLD=$THRESHOLD"
settings+=" SPLIT_HYPHENS=$SPLIT_HYPHENS DEDUP=$DEDUP"
mkdir -p "$WORK"/{archives,done,raw,text,normal,tokens,pieces}

settled() {  # settled < SETTINGS: those that a step may have used; a size may prove too large
    if [ -e "$WORK/done/learn" ]; then cat; else sed -E 's/ (SIZE|THRESHOLD)=[^ ]*//g'; fi
}

[ ! -e "$WORK/settings" ] || [ "$(settled < "$WORK/settings")" = "$(settled <<< "$settings")" ] ||
    stop "$WORK was begun with $(cat "$WORK/settings"), but this is $settings; choose another WORK"
echo "$settings" > "$WORK/settings"

for archive in "${ARCHIVES[@]}"; do
    name=$(basename "$archive")
    [ -z "$WMT_SOURCE" ] || archive=$WMT_SOURCE/$name
    step "fetch $name" fairseq-rope fetch "$archive" "$WORK/archives/$name" \
        --lock "$WORK/archives/sha256.txt"
done
step "unpack europarl" unpack training-parallel-europarl-v7.tgz "${CORPORA[0]}".{en,de}
step "unpack commoncrawl" unpack training-parallel-commoncrawl.tgz "${CORPORA[1]}".{en,de}
step "unpack news-commentary" unpack training-parallel-nc-v9.tgz "${CORPORA[2]}".{en,de}
step "unpack valid" unpack dev.tgz "${VALID[@]}"
step "unpack test" unpack test-full.tgz "${TEST[@]}"

step "read valid.en" read_sgm en "${VALID[0]}" valid
step "read valid.de" read_sgm de "${VALID[1]}" valid
step "read test.en" read_sgm en "${TEST[0]}" test
step "read test.de" read_sgm de "${TEST[1]}" test

for corpus in "${CORPORA[@]}"; do
    normalise_both "$(basename "$corpus")" "$WORK/raw/$corpus"
done
for part in valid test; do normalise_both "$part" "$WORK/text/$part"; done

for language in en de; do
    step "tokenise train.$language" tokenise_train "$language"
    for part in valid test; do
        step "tokenise $part.$language" tokenise "$part" "$language" \
            < "$WORK/normal/$part.$language"
    done
done
train=$WORK/clean
step "clean" fairseq-rope clean "$WORK"/tokens/train.{en,de} "$train".{en,de} \
    --report "$WORK/report" --name "train clean"
if [ "$DEDUP" != no ]; then
    train=$WORK/dedup
    step "dedup" fairseq-rope dedup "$WORK"/clean.{en,de} "$train".{en,de} \
        --report "$WORK/report" --name "train dedup"
fi
step "learn" learn
for language in en de; do
    step "segment train.$language" segment train "$language" "$train.$language"
    for part in valid test; do
        step "segment $part.$language" segment "$part" "$language" "$WORK/tokens/$part.$language"
    done
done
step "binarise" binarise

echo
fairseq-rope report "$WORK/report"
echo "pieces in the joined dictionary: $(wc -l < "$WORK/data/dict.en.txt")"
[ "$SEGMENTER" = sentencepiece ] || (cd "$WORK" && grep -c '' vocabulary.{en,de})
lines=$(wc -l < "$WORK/text/test.en")
[ "$lines" -eq $TEST_LINES ] || echo "the test set has $lines lines; newstest2014 has $TEST_LINES"
