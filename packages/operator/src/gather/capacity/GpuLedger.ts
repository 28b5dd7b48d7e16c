import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import type { WatchedPod } from "../../resources/watched.ts"
import { isGated } from "../observePod.ts"
import { type GpuUsage, makeGpuUsage } from "./GpuUsage.ts"
import { type Hardware, hardwareOf } from "./hardware.ts"
import { makeNodeRoom } from "./NodeRoom.ts"
import { accepts, hasLabels, offeredGpus } from "./nodeFit.ts"
import { shortageOf } from "./nodeShortage.ts"
import { type Taken, takenBy } from "./takenGpus.ts"

/** The capacity of a host class's nodes. */
export interface Capacity {
  /** Nodes with the labels of the class. */
  readonly nodes: number
  /** The nodes among them that accept engines now, and their GPUs. */
  readonly openNodes: number
  readonly gpus: number
  readonly freeGpus: number
  /** Pods of the class that have not ended. */
  readonly engines: number
}

interface OpenGpus extends Pick<Capacity, "freeGpus" | "gpus"> {
  /** GPUs of pods that are being deleted. */
  readonly endingGpus: number
}

/** The state that the queries of a ledger read. */
interface LedgerState {
  readonly nodes: Map<string, Node>
  readonly usage: GpuUsage
  /** Incremented with each change of a node, and of a node or a pod. */
  readonly changes: { nodes: number; all: number }
}

/** The GPUs that nodes offer and pods leave free. */
const makeCapacities = ({ changes, nodes, usage }: LedgerState) => {
  const counted = new WeakMap<PodClass, OpenGpus & { readonly change: number }>()
  const openGpus = (podClass: PodClass): OpenGpus => {
    const sums = { gpus: 0, freeGpus: 0, endingGpus: 0 }
    for (const [name, node] of nodes) {
      if (!accepts(podClass, node)) continue
      const offered = offeredGpus(podClass, node)
      sums.gpus += offered
      sums.freeGpus += Math.max(0, offered - usage.onNode(podClass, name))
      sums.endingGpus += usage.ending(podClass, name)
    }
    return sums
  }
  return {
    /** Reads every node and pod. */
    capacity: (podClass: PodClass): Capacity => {
      const labelled = [...nodes.values()].filter((node) => hasLabels(podClass, node))
      const openNodes = labelled.filter((node) => accepts(podClass, node)).length
      const { freeGpus, gpus } = openGpus(podClass)
      return { nodes: labelled.length, openNodes, gpus, freeGpus, engines: usage.engines(podClass) }
    },
    /** GPUs of the open nodes of the class, and those among them that are free or soon will be. Computed once after each change. */
    gpus: (podClass: PodClass): OpenGpus => {
      const known = counted.get(podClass)
      if (known?.change === changes.all) return known
      const sums = { ...openGpus(podClass), change: changes.all }
      counted.set(podClass, sums)
      return sums
    }
  }
}

/** Whether nodes may take engines at all, however many pods they have. */
const makeNodeQueries = ({ changes, nodes }: LedgerState) => {
  const shortages = new Map<string, { readonly podClass: PodClass; readonly change: number; readonly message: string | null }>()
  return {
    /**
     * Why no node can take an engine of the class, even without any pods: a phrase without a full stop. Null if one
     * can.
     */
    shortage: (podClass: PodClass): string | null => {
      const { name } = podClass.hostClass
      const known = shortages.get(name)
      if (known?.podClass === podClass && known.change === changes.nodes) return known.message
      const message = shortageOf(podClass, [...nodes.values()])
      shortages.set(name, { podClass, change: changes.nodes, message })
      return message
    },
    /** What the labels of the class's nodes say about their GPUs. Reads every node. */
    hardware: (podClass: PodClass): Hardware => hardwareOf(podClass, [...nodes.values()]),
    /** Whether another node than these accepts engines of the class. */
    hasOtherNode: (podClass: PodClass, names: ReadonlyArray<string>): boolean => {
      const isOther = ([name, node]: readonly [string, Node]) =>
        !names.includes(name) && accepts(podClass, node) && offeredGpus(podClass, node) >= podClass.hostClass.gpu_count
      return nodes.entries().some(isOther)
    },
    /** Whether some node accepts engines of both classes. */
    shareNodes: (one: PodClass, other: PodClass): boolean => nodes.values().some((node) => accepts(one, node) && accepts(other, node))
  }
}

/**
 * GPUs that nodes offer and pods take, updated with each change, so that the cost of a query does not
 * depend on their number. `except` names a pod that does not count. A pod that Kueue holds back takes nothing and is
 * not counted.
 */
export const makeGpuLedger = () => {
  const state: LedgerState = { nodes: new Map(), usage: makeGpuUsage(), changes: { nodes: 0, all: 0 } }
  const { changes, nodes, usage } = state
  const { freeSlots, noPlaceOf, spoil } = makeNodeRoom(nodes, usage)
  const listeners: Array<(pod: string, isPresent: boolean) => void> = []
  return {
    setNode: (name: string, node: Node | undefined): void => {
      if (node === undefined) nodes.delete(name)
      else nodes.set(name, node)
      changes.nodes++
      changes.all++
      spoil(name)
    },
    setPod: (name: string, pod: WatchedPod | undefined): void => {
      const wasPresent = usage.has(name)
      const isPresent = pod !== undefined && !isGated(pod)
      const taken = isPresent ? takenBy(pod) : undefined
      spoil(usage.takenOf(name)?.node)
      usage.set(name, taken)
      changes.all++
      spoil(taken?.node)
      if (isPresent !== wasPresent) for (const notify of listeners) notify(name, isPresent)
    },
    /** The GPUs of a pod in another namespace; undefined if it holds none any more. `key`: `namespace/name`. */
    setOther: (key: string, taken: Taken | undefined): void => {
      spoil(usage.takenOf(key)?.node)
      usage.set(key, taken)
      changes.all++
      spoil(taken?.node)
    },
    /** Registers a listener for pods that appear and go. */
    onPod: (notify: (pod: string, isPresent: boolean) => void): void => void listeners.push(notify),
    hasPod: usage.has,
    usedGpus: usage.usedGpus,
    unplaced: usage.unplaced,
    onTheirWay: usage.onTheirWay,
    freeSlots,
    noPlaceOf,
    ...makeCapacities(state),
    ...makeNodeQueries(state)
  }
}
export type GpuLedger = ReturnType<typeof makeGpuLedger>
