import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { bin } from "./places.ts"

/** Programs, each with Debian's package. */
const programs = {
  buildah: "buildah",
  runc: "runc",
  nft: "nftables",
  conntrack: "conntrack",
  ip: "iproute2",
  nsenter: "util-linux",
  openssl: "openssl"
} as const

const built = ["etcd", "kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr", "coredns", "simulatedGpus", "pause", "kubectl", "helm"]

/** Where CNI plugins are on Debian. */
export const networkPlugins = "/usr/lib/cni"

const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"].filter((folder) => folder !== "")

/** What this machine lacks for real nodes, one sentence each. */
export const missingRequirements = (): ReadonlyArray<string> => {
  const lacking = Object.entries(programs).filter(([program]) => !folders.some((folder) => existsSync(join(folder, program))))
  const packages = [...new Set(lacking.map(([, name]) => name)), ...(existsSync(join(networkPlugins, "ptp")) ? [] : ["containernetworking-plugins"])]
  const unbuilt = built.filter((program) => !existsSync(join(bin, program)))
  return [
    ...(process.platform === "linux" ? [] : ["Nodes need Linux."]),
    ...(process.getuid?.() === 0 ? [] : ["Nodes need root: they create namespaces, control groups and mounts."]),
    ...(packages.length === 0 ? [] : [`Packages are missing. On Debian: apt-get install ${packages.join(" ")}`]),
    ...(unbuilt.length === 0 ? [] : [`tools/bin lacks ${unbuilt.join(", ")}. Run: tools/build.sh node`])
  ]
}
