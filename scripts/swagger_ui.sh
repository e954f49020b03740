#!/bin/sh
# Replaces the files of Swagger UI in services/indexer/query/api_page by those of an npm package: scripts/swagger_ui.sh 5.35.0
set -eu
version=$1
target=$(cd "$(dirname "$0")/.." && pwd)/services/indexer/query/api_page
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
tar xzf "$(npm pack --silent "swagger-ui-dist@$version")"
cd package
cp LICENSE NOTICE swagger-ui-bundle.js.LICENSE.txt "$target"
sed 's,^//# sourceMappingURL.*$,,' swagger-ui-bundle.js > "$target/swagger-ui-bundle.js"
sed 's,/\*# sourceMappingURL[^*]*\*/,,' swagger-ui.css > "$target/swagger-ui.css"
