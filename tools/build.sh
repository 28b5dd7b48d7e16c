#!/usr/bin/env bash
# Builds a real Kubernetes control plane from pinned Go modules, without containers: etcd, kube-apiserver, kube-scheduler,
# kube-controller-manager, kubectl, kwok and helm, into tools/bin. Needs Go 1.26 or newer. Minutes with an empty Go cache;
# nothing is done where tools/bin is of the same modules already.
set -euo pipefail
cd "$(dirname "$0")"
command -v go > /dev/null || { echo "tools/build.sh needs Go 1.26 or newer (https://go.dev/dl)." >&2; exit 1; }
want=$(cat kubernetes/go.mod kubernetes/go.sum kwok/go.mod kwok/go.sum helm/go.mod helm/go.sum build.sh | sha256sum | cut -d ' ' -f 1)
[ -f bin/.built ] && [ "$(cat bin/.built)" = "$want" ] && exit 0
mkdir -p bin && rm -f bin/.built
version=k8s.io/component-base/version
release=$(grep -oE "k8s.io/kubernetes v[0-9.]+" kubernetes/go.mod | cut -d " " -f 2)
minor=$(echo "$release" | cut -d . -f 2)
for module in kubernetes kwok helm; do
  echo "building $module" >&2
  # What is pinned is what is built: go.mod and go.sum are not changed here.
  (cd "$module" && go build -mod=readonly -trimpath \
    -ldflags="-s -w -X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=$minor" -o ../bin/ tool)
done
mv bin/server bin/etcd
echo "$want" > bin/.built
