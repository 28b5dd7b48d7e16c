import type { PodClass } from "../../resources/PodClass.ts"
import type { Taken } from "./takenGpus.ts"

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

/** Sums over pods: by node, and by host class and organization. */
const makeSums = () => {
  const onNode = makeTally()
  const used = makeTally()
  const unbound = makeTally()
  const onTheirWay = makeTally()
  const ending = makeTally()
  const count = (taken: Taken, sign: 1 | -1) => {
    const { amounts, hostClass, node, organization, unschedulable } = taken
    if (node === undefined) unbound.add(sign, hostClass)
    for (const [resource, amount] of amounts) {
      if (node !== undefined) onNode.add(sign * amount, node, resource)
      if (node !== undefined && taken.ending) ending.add(sign * amount, node, resource)
      if (node === undefined && !unschedulable) onTheirWay.add(sign * amount, hostClass, resource)
      if (organization === undefined) continue
      used.add(sign * amount, hostClass, resource)
      used.add(sign * amount, hostClass, resource, organization)
    }
  }
  return { onNode, used, unbound, onTheirWay, ending, count }
}

/** The resources that pods take. `except` names a pod that does not count. */
export const makeGpuUsage = () => {
  /** Null if the pod has ended. */
  const pods = new Map<string, Taken | null>()
  const { count, ending, onNode, onTheirWay, unbound, used } = makeSums()
  const takenOf = (name: string): Taken | undefined => pods.get(name) ?? undefined
  const amountOf = (taken: Taken | undefined, { gpuResource }: PodClass): number => taken?.amounts.get(gpuResource) ?? 0
  return {
    takenOf,
    has: (name: string): boolean => pods.has(name),
    /** Replaces the resources of a pod: null if it has ended, undefined if it does not exist. */
    set: (name: string, taken: Taken | null | undefined): void => {
      const before = takenOf(name)
      if (before !== undefined) count(before, -1)
      if (taken === undefined) pods.delete(name)
      else pods.set(name, taken)
      if (taken !== null && taken !== undefined) count(taken, 1)
    },
    /** Pods of the class that have not ended. */
    engines: ({ hostClass }: PodClass): number => [...pods.values()].filter((taken) => taken?.hostClass === hostClass.name).length,
    /** GPUs of the class's resource that pods on the node take. */
    onNode: ({ gpuResource }: PodClass, node: string): number => onNode.of(node, gpuResource),
    /** Those among them whose pods are being deleted. */
    ending: ({ gpuResource }: PodClass, node: string): number => ending.of(node, gpuResource),
    /** GPUs of the class's pods of one organization, or of all organizations. */
    usedGpus: (podClass: PodClass, except: string, organization?: string): number => {
      const { gpuResource, hostClass } = podClass
      const own = takenOf(except)
      const counts = own?.hostClass === hostClass.name && own.organization !== undefined && (organization ?? own.organization) === own.organization
      const words = organization === undefined ? [] : [organization]
      return used.of(hostClass.name, gpuResource, ...words) - (counts ? amountOf(own, podClass) : 0)
    },
    /** Pods of the class without a node. */
    unplaced: ({ hostClass }: PodClass, except: string): number => {
      const own = takenOf(except)
      return unbound.of(hostClass.name) - (own !== undefined && own.node === undefined && own.hostClass === hostClass.name ? 1 : 0)
    },
    /** GPUs of the class's pods that have no node yet. Unschedulable pods do not count. */
    onTheirWay: (podClass: PodClass, except: string): number => {
      const { gpuResource, hostClass } = podClass
      const own = takenOf(except)
      const counts = own !== undefined && own.node === undefined && !own.unschedulable && own.hostClass === hostClass.name
      return onTheirWay.of(hostClass.name, gpuResource) - (counts ? amountOf(own, podClass) : 0)
    }
  }
}
export type GpuUsage = ReturnType<typeof makeGpuUsage>
