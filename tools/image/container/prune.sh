#!/bin/sh
# The Containerfile runs this after `npm ci`, in the folder of the product. It removes what no program reads at run time from the installed packages (type
# declarations, sources of compiled code, source maps, documents, tests, builds for another runtime), and makes file modes independent of the checkout.
set -eu
find node_modules -type f ! -iname 'licen[cs]e*' ! -iname 'notice*' ! -iname 'copying*' \
  \( -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.map' -o -name '*.md' -o -name '*.markdown' -o -name '*.bare' -o -name '*.tsbuildinfo' \) -delete
# Only folders at the top of a package: deeper ones may be code.
find node_modules -type f -name package.json | while read -r file; do
  for folder in test tests __tests__ docs example examples benchmark benchmarks .github; do rm -rf "${file%/package.json}/$folder"; done
done
find node_modules -type d -empty -delete
rm -rf tools
chmod -R u=rwX,go=rX .
