#!/usr/bin/env bash
# Usage: tools/build.sh [node | gitops]
# Builds a real Kubernetes control plane from pinned Go modules, without containers: etcd, kube-apiserver, kube-scheduler,
# kube-controller-manager, kubectl, kwok and helm, into tools/bin. With `node` also what real nodes need: kubelet,
# kube-proxy, containerd with its shim and ctr, CoreDNS, the pause program, and a device plugin that offers GPUs that do not
# exist. With `gitops` also Argo CD. Needs Go 1.26 or newer. Takes minutes with an empty Go cache, and does nothing if tools/bin is current.
# KUBERNETES_MINOR=1.36 selects another minor version of tools/kubernetes.
set -euo pipefail
cd "$(dirname "$0")"
command -v go > /dev/null || { echo "tools/build.sh needs Go 1.26 or newer (https://go.dev/dl)." >&2; exit 1; }
minor=${KUBERNETES_MINOR:-1.37}
kubernetes=kubernetes/$minor
[ -f "$kubernetes/go.mod" ] || { echo "tools/build.sh has no Kubernetes $minor, only: $(ls kubernetes | paste -s -d ' ')." >&2; exit 1; }
case "${1:-}" in '' | node | gitops) ;; *) echo "tools/build.sh: unknown argument '$1'. Usage: tools/build.sh [node | gitops]" >&2; exit 1 ;; esac
mkdir -p bin
# Without C: the programs are the same on each machine, and CoreDNS and the pause program run in images without a libc.
export CGO_ENABLED=0 GOWORK=off

version=k8s.io/component-base/version
release=$(grep -oE "k8s.io/kubernetes v[0-9.]+" "$kubernetes/go.mod" | cut -d " " -f 2)
flags="-s -w -X $version.gitVersion=$release -X $version.gitMajor=1 -X $version.gitMinor=${minor#1.}"

# compile MODULE PACKAGE... [-- BUILD FLAG...]: what is pinned is what is built, because go.mod and go.sum stay as they are.
compile() {
  local module=$1 out=$PWD/bin/
  shift
  echo "building $module" >&2
  (cd "$module" && go build -mod=readonly -trimpath -ldflags="$flags" -o "$out" "$@")
}

# group NAME FOLDER... : runs the function build_NAME unless tools/bin has what it builds from these folders. Waits for another process that builds the same.
group() {
  local name=$1 want
  shift
  exec 9> "bin/.lock-$name"
  flock 9
  want=$( (cd . && find "$@" build.sh -type f | sort | xargs cat && echo "$release") | sha256sum | cut -d ' ' -f 1)
  [ -f "bin/.built-$name" ] && [ "$(cat "bin/.built-$name")" = "$want" ] && return
  rm -f "bin/.built-$name"
  "build_$name"
  echo "$want" > "bin/.built-$name"
}

build_plane() {
  compile "$kubernetes" go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube{-apiserver,-controller-manager,-scheduler,ctl}
  mv bin/server bin/etcd
  compile kwok tool
  compile helm tool
}

build_node() {
  compile "$kubernetes" k8s.io/kubernetes/cmd/kube{let,-proxy}
  # These tags need no headers of C libraries. The CRI plugin stays.
  compile containerd -tags "no_btrfs no_devmapper no_zfs no_aufs" tool
  compile coredns .
  compile simulatedGpus .
  compile pause .
}

# manifests MODULE PACKAGE FOLDER NAME: the objects that a module brings, as tools/bin/NAME.
manifests() {
  local from
  from=$(cd "$1" && go list -mod=readonly -m -f '{{.Dir}}' "$2")/$3
  rm -rf "bin/$4"
  cp -r "$from" "bin/$4"
  chmod -R u+w "bin/$4"
}

build_argocd() {
  compile argocd ./argocdCache tool
  mv bin/cmd bin/argocd
  manifests argocd github.com/argoproj/argo-cd/v3 manifests argocd-manifests
}

group plane "$kubernetes" kwok helm
[ "${1:-}" != node ] || group node "$kubernetes" containerd coredns simulatedGpus pause
[ "${1:-}" != gitops ] || group argocd argocd
