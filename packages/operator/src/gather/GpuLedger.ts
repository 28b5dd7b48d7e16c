import type { Node } from "@seatrial/kube"
import type { PodClass } from "../resources/HostClassResource.ts"
import { hostClassLabel, organizationLabel } from "../resources/objectNames.ts"
import { isGated } from "./observePod.ts"
import type { WatchedPod } from "./watched.ts"

const quantity = (value: string | number | undefined): number => {
  const parsed = Number(value ?? 0)
  return Number.isFinite(parsed) ? parsed : 0
}

export const gpusOf = (pod: WatchedPod, resource: string): number =>
  (pod.spec?.containers ?? []).reduce((sum, { resources }) => sum + quantity(resources?.limits?.[resource] ?? resources?.requests?.[resource]), 0)

const hasLabels = ({ nodeSelector }: PodClass, node: Node): boolean =>
  Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value)

type Closed = "cordoned" | "not ready" | "tainted"

/** Why no engine of the class may be placed on the node now; null if one may. */
const closedBy = ({ tolerations }: PodClass, node: Node): Closed | null => {
  if (node.spec?.unschedulable === true) return "cordoned"
  if (node.status?.conditions?.some(({ status, type }) => type === "Ready" && status === "True") !== true) return "not ready"
  const tolerated = (node.spec?.taints ?? []).every(
    (taint) =>
      taint.effect === "PreferNoSchedule" ||
      tolerations.some(
        ({ effect, key, operator, value }) =>
          (key === undefined || key === taint.key) &&
          (effect === undefined || effect === taint.effect) &&
          (operator === "Exists" || (value ?? "") === (taint.value ?? ""))
      )
  )
  return tolerated ? null : "tainted"
}

/** Whether engines of the class may be placed on the node now. */
const accepts = (podClass: PodClass, node: Node): boolean => hasLabels(podClass, node) && closedBy(podClass, node) === null

/**
 * Why no node can take an engine of the class, even without any pods; null if one can. A phrase without a full stop.
 */
const shortageOf = (podClass: PodClass, nodes: ReadonlyArray<Node>): string | null => {
  const { gpuResource, hostClass, nodeSelector } = podClass
  const among = (count: number) => (count === 1 ? "the only node" : `all ${count} nodes`)
  const labelled = nodes.filter((node) => hasLabels(podClass, node))
  const labels = Object.entries(nodeSelector).map(([label, value]) => `${label}=${value}`)
  if (labelled.length === 0) {
    return nodes.length === 0 ? "the cluster has no node" : `no node has the class's labels ${labels.join(", ").slice(0, 200)} (nodes checked: ${nodes.length})`
  }
  const offers = labelled.map((node) => quantity(node.status?.allocatable?.[gpuResource]))
  const most = Math.max(...offers)
  const whose = labels.length === 0 ? "" : " with the class's labels"
  if (most <= 0) return `no node${whose} offers ${gpuResource} (nodes checked: ${labelled.length})`
  if (most < hostClass.gpu_count) return `no node${whose} offers ${hostClass.gpu_count} of ${gpuResource}: the most is ${most}`
  const offering = labelled.filter((_, index) => (offers[index] ?? 0) >= hostClass.gpu_count)
  const closed = offering.map((node) => closedBy(podClass, node))
  if (closed.includes(null)) return null
  const count = (why: Closed) => closed.filter((other) => other === why).length
  const reasons = (["cordoned", "not ready", "tainted"] as const)
    .filter((why) => count(why) > 0)
    .map((why) => (closed.length === 1 ? why : `${count(why)} ${why}`))
  return `${among(closed.length)} of the class ${closed.length === 1 ? "takes" : "take"} no new pods (${reasons.join(", ")})`
}

/** The resources of one pod. */
interface Taken {
  readonly node: string | undefined
  readonly hostClass: string
  readonly organization: string | undefined
  /** Whether the scheduler has reported it unschedulable. */
  readonly unschedulable: boolean
  /** Amounts by resource. */
  readonly amounts: ReadonlyMap<string, number>
}

/** Null if the pod has ended. */
const takenBy = (pod: WatchedPod): Taken | null => {
  if (pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed") return null
  const resources = new Set((pod.spec?.containers ?? []).flatMap(({ resources }) => Object.keys({ ...resources?.requests, ...resources?.limits })))
  const { [hostClassLabel]: hostClass = "", [organizationLabel]: organization } = pod.metadata.labels ?? {}
  return {
    node: pod.spec?.nodeName,
    hostClass,
    organization,
    unschedulable: pod.status?.conditions?.some(({ reason }) => reason === "Unschedulable") === true,
    amounts: new Map([...resources].map((resource) => [resource, gpusOf(pod, resource)] as const).filter(([, amount]) => amount > 0))
  }
}

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

/** Sums by composite key. */
const makeTally = () => {
  const sums = new Map<string, number>()
  const keyOf = (words: ReadonlyArray<string>) => words.join("\n")
  return {
    of: (...words: ReadonlyArray<string>): number => sums.get(keyOf(words)) ?? 0,
    add: (amount: number, ...words: ReadonlyArray<string>): void => {
      const key = keyOf(words)
      const sum = (sums.get(key) ?? 0) + amount
      if (sum === 0) sums.delete(key)
      else sums.set(key, sum)
    }
  }
}

/** The engines of a class for which each node has room. `stale` lists the nodes to compute again. */
interface Room {
  readonly podClass: PodClass
  readonly slots: Map<string, number>
  readonly stale: Set<string>
  total: number
}

/**
 * GPUs that nodes offer and pods of the namespace take, updated with each change, so that the cost of a query does not
 * depend on their number. `except` names a pod that does not count. A pod that Kueue holds back takes nothing and is
 * not counted.
 */
export const makeGpuLedger = () => {
  const nodes = new Map<string, Node>()
  /** Null if the pod has ended. */
  const pods = new Map<string, Taken | null>()
  const onNode = makeTally()
  const used = makeTally()
  const unbound = makeTally()
  const onTheirWay = makeTally()
  const rooms = new Map<string, Room>()
  /** Incremented with each change of a node. */
  let nodesVersion = 0
  const shortages = new Map<string, { readonly podClass: PodClass; readonly look: number; readonly words: string | null }>()
  const listeners: Array<(pod: string, isPresent: boolean) => void> = []

  const spoil = (node: string) => {
    for (const { stale } of rooms.values()) stale.add(node)
  }
  const count = ({ amounts, hostClass, node, organization, unschedulable }: Taken, sign: 1 | -1) => {
    if (node === undefined) unbound.add(sign, hostClass)
    else spoil(node)
    for (const [resource, amount] of amounts) {
      if (node !== undefined) onNode.add(sign * amount, node, resource)
      else if (!unschedulable) onTheirWay.add(sign * amount, hostClass, resource)
      if (organization === undefined) continue
      used.add(sign * amount, hostClass, resource)
      used.add(sign * amount, hostClass, resource, organization)
    }
  }

  const slotsOn = (podClass: PodClass, name: string, givenBack: number): number => {
    const node = nodes.get(name)
    if (node === undefined || !accepts(podClass, node)) return 0
    const { gpuResource, hostClass } = podClass
    const free = quantity(node.status?.allocatable?.[gpuResource]) - onNode.of(name, gpuResource) + givenBack
    return Math.max(0, Math.floor(free / hostClass.gpu_count))
  }
  const roomFor = (podClass: PodClass): Room => {
    const known = rooms.get(podClass.hostClass.name)
    const room: Room = known?.podClass === podClass ? known : { podClass, slots: new Map(), stale: new Set(nodes.keys()), total: 0 }
    rooms.set(podClass.hostClass.name, room)
    for (const name of room.stale) {
      const slots = slotsOn(podClass, name, 0)
      room.total += slots - (room.slots.get(name) ?? 0)
      if (slots === 0) room.slots.delete(name)
      else room.slots.set(name, slots)
    }
    room.stale.clear()
    return room
  }
  /** Incremented with each change of a node or a pod. */
  let version = 0
  const counted = new WeakMap<PodClass, { readonly change: number; readonly gpus: number; readonly freeGpus: number }>()
  const takenOf = (name: string) => pods.get(name) ?? undefined

  return {
    setNode: (name: string, node: Node | undefined): void => {
      if (node === undefined) nodes.delete(name)
      else nodes.set(name, node)
      nodesVersion++
      version++
      spoil(name)
    },
    setPod: (name: string, pod: WatchedPod | undefined): void => {
      const before = takenOf(name)
      const wasThere = pods.has(name)
      version++
      if (before !== undefined) count(before, -1)
      const isPresent = pod !== undefined && !isGated(pod)
      if (isPresent) {
        const now = takenBy(pod)
        pods.set(name, now)
        if (now !== null) count(now, 1)
      } else pods.delete(name)
      if (isPresent !== wasThere) for (const tell of listeners) tell(name, isPresent)
    },
    /** Reads every node and pod. */
    capacity: (podClass: PodClass): Capacity => {
      const { gpuResource, hostClass, nodeSelector } = podClass
      const labelled = [...nodes].filter(([, node]) => Object.entries(nodeSelector).every(([label, value]) => node.metadata.labels?.[label] === value))
      const open = labelled.filter(([, node]) => accepts(podClass, node))
      const offers = open.map(([name, node]) => ({ name, gpus: quantity(node.status?.allocatable?.[gpuResource]) }))
      return {
        nodes: labelled.length,
        openNodes: open.length,
        gpus: offers.reduce((sum, { gpus }) => sum + gpus, 0),
        freeGpus: offers.reduce((sum, { gpus, name }) => sum + Math.max(0, gpus - onNode.of(name, gpuResource)), 0),
        engines: [...pods.values()].filter((taken) => taken?.hostClass === hostClass.name).length
      }
    },
    /** GPUs of the open nodes of the class, and the free ones among them. Computed once after each change. */
    gpus: (podClass: PodClass): Pick<Capacity, "freeGpus" | "gpus"> => {
      const known = counted.get(podClass)
      if (known?.change === version) return known
      const { gpuResource } = podClass
      const sums = { change: version, gpus: 0, freeGpus: 0 }
      for (const [name, node] of nodes) {
        if (!accepts(podClass, node)) continue
        const offered = quantity(node.status?.allocatable?.[gpuResource])
        sums.gpus += offered
        sums.freeGpus += Math.max(0, offered - onNode.of(name, gpuResource))
      }
      counted.set(podClass, sums)
      return sums
    },
    hasPod: (name: string): boolean => pods.has(name),
    /** Registers a listener for pods that appear and go. */
    onPod: (tell: (pod: string, isPresent: boolean) => void): void => void listeners.push(tell),
    /** Engines of the class for which one node has enough free GPUs. */
    freeSlots: (podClass: PodClass, except: string): number => {
      const room = roomFor(podClass)
      const free = room.total - unbound.of(podClass.hostClass.name)
      const own = takenOf(except)
      if (own === undefined) return free
      if (own.node === undefined) return own.hostClass === podClass.hostClass.name ? free + 1 : free
      return free + slotsOn(podClass, own.node, own.amounts.get(podClass.gpuResource) ?? 0) - (room.slots.get(own.node) ?? 0)
    },
    /**
     * Why no node can take an engine of the class, even without any pods: a phrase without a full stop. Null if one
     * can.
     */
    shortage: (podClass: PodClass): string | null => {
      const { name } = podClass.hostClass
      const known = shortages.get(name)
      if (known?.podClass === podClass && known.look === nodesVersion) return known.words
      const words = shortageOf(podClass, [...nodes.values()])
      shortages.set(name, { podClass, look: nodesVersion, words })
      return words
    },
    /** Whether another node than these accepts engines of the class. */
    hasOtherNode: (podClass: PodClass, names: ReadonlyArray<string>): boolean => {
      const { gpuResource, hostClass } = podClass
      for (const [name, node] of nodes) {
        if (!names.includes(name) && accepts(podClass, node) && quantity(node.status?.allocatable?.[gpuResource]) >= hostClass.gpu_count) return true
      }
      return false
    },
    /** Why an engine of the class could not take the place of the pod `holder`; null if it could. */
    noPlaceOf: (podClass: PodClass, holder: string): string | null => {
      const taken = takenOf(holder)
      const node = taken?.node === undefined ? undefined : nodes.get(taken.node)
      if (taken === undefined || node === undefined) return "it has no node"
      if (!hasLabels(podClass, node)) return "its node does not have the class's labels"
      const closed = closedBy(podClass, node)
      if (closed !== null) return `its node takes no new pods (${closed})`
      const room = slotsOn(podClass, node.metadata.name, taken.amounts.get(podClass.gpuResource) ?? 0) > 0
      return room ? null : `its node would not have enough ${podClass.gpuResource}`
    },
    /** GPUs of the class's pods of one organization, or of all organizations. */
    usedGpus: ({ gpuResource, hostClass }: PodClass, except: string, organization?: string): number => {
      const own = takenOf(except)
      const counts = own?.hostClass === hostClass.name && own.organization !== undefined && (organization ?? own.organization) === own.organization
      const words = organization === undefined ? [] : [organization]
      return used.of(hostClass.name, gpuResource, ...words) - (counts ? (own.amounts.get(gpuResource) ?? 0) : 0)
    },
    /** Pods of the class without a node. */
    unplaced: ({ hostClass }: PodClass, except: string): number => {
      const own = takenOf(except)
      return unbound.of(hostClass.name) - (own !== undefined && own.node === undefined && own.hostClass === hostClass.name ? 1 : 0)
    },
    /** GPUs of the class's pods that have no node yet. Unschedulable pods do not count. */
    onTheirWay: ({ gpuResource, hostClass }: PodClass, except: string): number => {
      const own = takenOf(except)
      const counts = own !== undefined && own.node === undefined && !own.unschedulable && own.hostClass === hostClass.name
      return onTheirWay.of(hostClass.name, gpuResource) - (counts ? (own.amounts.get(gpuResource) ?? 0) : 0)
    },
    /** Whether some node accepts engines of both classes. */
    shareNodes: (one: PodClass, other: PodClass): boolean => {
      for (const node of nodes.values()) if (accepts(one, node) && accepts(other, node)) return true
      return false
    }
  }
}
export type GpuLedger = ReturnType<typeof makeGpuLedger>
