import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { bin } from "./places.ts"

/** Programs, each with Debian's package. */
export const programs = {
  buildah: "buildah",
  runc: "runc",
  nft: "nftables",
  conntrack: "conntrack",
  ip: "iproute2",
  nsenter: "util-linux",
  openssl: "openssl",
  curl: "curl"
} as const

export const built = ["etcd", "kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr", "coredns", "simulatedGpus", "pause", "kubectl", "helm"]

/** Where CNI plugins are on Debian. */
export const networkPlugins = "/usr/lib/cni"

/** What the requirements depend on. */
export interface Machine {
  readonly platform: string
  readonly isRoot: boolean
  /** Folders of programs. */
  readonly folders: ReadonlyArray<string>
  readonly networkPlugins: string
  /** The folder of what tools/build.sh builds. */
  readonly bin: string
}

const thisMachine = (): Machine => ({
  platform: process.platform,
  isRoot: process.getuid?.() === 0,
  folders: [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin"].filter((folder) => folder !== ""),
  networkPlugins,
  bin
})

/** What a machine lacks for real nodes, one sentence each. */
export const missingRequirements = (machine: Machine = thisMachine()): ReadonlyArray<string> => {
  const lacking = Object.entries(programs).filter(([program]) => !machine.folders.some((folder) => existsSync(join(folder, program))))
  const hasPlugins = existsSync(join(machine.networkPlugins, "ptp"))
  const packages = [...new Set(lacking.map(([, name]) => name)), ...(hasPlugins ? [] : ["containernetworking-plugins"])]
  const unbuilt = built.filter((program) => !existsSync(join(machine.bin, program)))
  return [
    ...(machine.platform === "linux" ? [] : ["Nodes need Linux."]),
    ...(machine.isRoot ? [] : ["Nodes need root: they create namespaces, control groups and mounts."]),
    ...(packages.length === 0 ? [] : [`Packages are missing. On Debian: apt-get install ${packages.join(" ")}`]),
    ...(unbuilt.length === 0 ? [] : [`tools/bin lacks ${unbuilt.join(", ")}. Run: tools/build.sh node`])
  ]
}
