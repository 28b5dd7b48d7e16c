import { readdirSync } from "node:fs"
import { join } from "node:path"

export const root = join(import.meta.dirname, "../..")
export const bin = join(root, "tools/bin")

/** State of the run, at a fixed path: the next run finds there what a run that was killed left behind. */
export const state = "/var/tmp/seatrial-node"

/** A variable of every program that the suite starts, by which the next run finds it. Containers do not have it; they are in the control groups of their node. */
export const mark = { name: "SEATRIAL_NODE_SUITE", value: state }

export const bridge = "seatrial0"
/** This machine's address on the bridge: API server and model hub listen there. */
export const hostAddress = "10.88.0.1"
/** The place of the person who follows the quick start: a network namespace whose ports are free, with an address on the bridge. */
export const desk = { namespace: "seatrial-desk", link: "seatrial-d0", address: "10.88.0.9" }
export const podNetwork = "10.244.0.0/16"
export const serviceNetwork = "10.96.0.0/16"
export const dnsAddress = "10.96.0.10"
export const apiServer = `https://${hostAddress}:6443`

/** A node of the cluster: its name, and the number that its addresses contain. */
export interface NodePlace {
  readonly name: string
  readonly number: number
  readonly address: string
  readonly pods: string
  /** The name of its network namespace and of its control groups. */
  readonly namespace: string
  readonly folder: string
  /** Its mount namespace, as a file that nsenter takes. */
  readonly mounts: string
}

const placeOf = (number: number): NodePlace => {
  const name = `node-${number}`
  const folder = join(state, name)
  return {
    name,
    number,
    address: `10.88.0.${10 + number}`,
    pods: `10.244.${number}.0/24`,
    namespace: `seatrial-${name}`,
    folder,
    mounts: join(folder, "namespaces/mounts")
  }
}

export const nodes: ReadonlyArray<NodePlace> = [placeOf(0), placeOf(1)]

/** The folders of all hierarchies of control groups: one for each controller with version 1. */
export const hierarchies = (): ReadonlyArray<string> => {
  const mounted = "/sys/fs/cgroup"
  const folders = readdirSync(mounted, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return readdirSync(mounted).includes("cgroup.controllers") ? [mounted] : folders.map(({ name }) => join(mounted, name))
}

/** The words that run a program in the namespaces of a node. `ip netns exec` would mount another /sys, without control groups. */
export const inNode = ({ mounts, namespace }: NodePlace): ReadonlyArray<string> => ["nsenter", `--net=/run/netns/${namespace}`, `--mount=${mounts}`]
