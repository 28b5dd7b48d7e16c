import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect, Schedule, type Scope } from "effect"
import { simulatedProduct } from "../cluster/simulatedHostClass.ts"
import type { NodePlane } from "./NodePlane.ts"
import { socketOf, writeConfiguration } from "./nodeConfiguration.ts"
import { bin, bridge, hierarchies, hostAddress, inNode, type NodePlace, nodes, serviceNetwork } from "./places.ts"
import { runNow, runTool, type ToolFailed } from "./runTool.ts"
import { type Part, startPart } from "./startPart.ts"

/** A node with its programs, each of which can be stopped and started again. */
export interface RealNode extends NodePlace {
  readonly containerd: Part
  readonly kubelet: Part
}

/** A network namespace with an address on the bridge, and routes to the pods of the other nodes. */
const createNetwork = (place: NodePlace): void => {
  const { address, namespace, number, pods } = place
  const within = (...words: ReadonlyArray<string>) => runNow("nsenter", `--net=/run/netns/${namespace}`, ...words)
  const link = `seatrial-v${number}`
  runNow("ip", "netns", "add", namespace)
  runNow("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
  runNow("ip", "link", "set", link, "master", bridge, "up")
  within("ip", "addr", "add", `${address}/24`, "dev", "eth0")
  within("ip", "link", "set", "eth0", "up")
  within("ip", "link", "set", "lo", "up")
  within("ip", "route", "add", "default", "via", hostAddress)
  // Rejected connections are answered without a limit, so that a probe always learns of it.
  const settings = { "net/ipv4/icmp_ratelimit": 0, "net/ipv4/ip_forward": 1, "net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/default/rp_filter": 0 }
  within(
    "sh",
    "-c",
    Object.entries(settings)
      .map(([name, value]) => `echo ${value} > /proc/sys/${name}`)
      .join(" && ")
  )
  runNow("ip", "route", "replace", pods, "via", address)
  if (number === 0) runNow("ip", "route", "replace", serviceNetwork, "via", address)
  for (const other of nodes) if (other.number !== number) within("ip", "route", "replace", other.pods, "via", other.address)
}

/** A mount namespace, because the kubelet's folder for device plugins has a fixed path. */
const createMounts = ({ folder, mounts }: NodePlace): void => {
  const own = dirname(mounts)
  const kubelet = "/var/lib/kubelet"
  mkdirSync(own, { recursive: true })
  mkdirSync(kubelet, { recursive: true })
  // A file of a mount namespace can only be on a private mount.
  runNow("mount", "--bind", own, own)
  runNow("mount", "--make-private", own)
  writeFileSync(mounts, "")
  const inside = `mount --bind '${join(folder, "kubelet")}' ${kubelet} && mount --make-rshared /`
  runNow("unshare", `--mount=${mounts}`, "--propagation", "private", "sh", "-c", inside)
}

/** With version 1 of control groups the kubelet's root must exist in each hierarchy, and needs processors and memory of its own. */
const createGroups = ({ namespace }: NodePlace): void => {
  for (const hierarchy of hierarchies()) {
    const group = join(hierarchy, namespace)
    mkdirSync(group, { recursive: true })
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if (existsSync(join(group, file)) && existsSync(join(hierarchy, file))) writeFileSync(join(group, file), readFileSync(join(hierarchy, file)))
    }
  }
}

const importImages = (place: NodePlace, archives: ReadonlyArray<string>): Effect.Effect<void, ToolFailed> => {
  const ctr = (...args: ReadonlyArray<string>) => runTool(join(bin, "ctr"), ["--address", socketOf(place), "--namespace", "k8s.io", ...args])
  const untilReady = Effect.retry(ctr("version"), { schedule: Schedule.spaced("100 millis"), times: 600 })
  const each = (archive: string) => ctr("images", "import", "--local", archive)
  return Effect.andThen(untilReady, Effect.forEach(archives, each, { discard: true }))
}

const labels = Object.entries({
  "nvidia.com/gpu.product": simulatedProduct,
  "nvidia.com/gpu.present": "true",
  "nvidia.com/gpu.count": "4",
  "nvidia.com/gpu.memory": "1024"
})

const kubeletFlags = ({ address, folder, name }: NodePlace, plane: NodePlane, configuration: string) => [
  `--config=${configuration}`,
  `--kubeconfig=${plane.kubeconfigOf(`system:node:${name}`)}`,
  "--root-dir=/var/lib/kubelet",
  `--cert-dir=${join(folder, "pki")}`,
  `--hostname-override=${name}`,
  `--node-ip=${address}`,
  `--node-labels=${labels.map((pair) => pair.join("=")).join(",")}`,
  "-v=2"
]

/** Starts a node: containerd with images, kubelet, kube-proxy and the device plugin. It ends with the scope. */
export const startRealNode = Effect.fnUntraced(function* (
  place: NodePlace,
  plane: NodePlane,
  archives: ReadonlyArray<string>
): Effect.fn.Return<RealNode, ToolFailed, Scope.Scope> {
  for (const name of ["cni", "kubelet", "pod-logs", "run"]) mkdirSync(join(place.folder, name), { recursive: true })
  createNetwork(place)
  createMounts(place)
  createGroups(place)
  const files = writeConfiguration(place, plane)
  const start = ([program = "", ...args]: ReadonlyArray<string>) =>
    startPart(`${place.name}-${basename(program)}`, [...inNode(place), join(bin, program), ...args])
  const containerd = yield* start(["containerd", "--config", files.containerd])
  yield* importImages(place, archives)
  const kubelet = yield* start(["kubelet", ...kubeletFlags(place, plane, files.kubelet)])
  yield* start(["kube-proxy", `--config=${files.kubeProxy}`])
  yield* start(["simulatedGpus", "/var/lib/kubelet/device-plugins", "4", String(2 ** 30)])
  yield* plane.run("kubectl", ["wait", "--for=create", `node/${place.name}`, "--timeout=180s"])
  yield* plane.run("kubectl", ["wait", "--for=condition=Ready", `node/${place.name}`, "--timeout=180s"])
  return { ...place, containerd, kubelet }
})
