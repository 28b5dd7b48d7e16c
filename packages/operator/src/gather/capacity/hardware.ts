import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import { hasLabels, offersShares, quantity } from "./nodeFit.ts"

/** A GPU's memory in bytes, by a node's label. */
interface LabeledMemory {
  readonly node: string
  readonly bytes: number
}

/** What the nodes of a class say about their GPUs, by the labels of GPU Feature Discovery. */
export interface Hardware {
  /** The smallest memory of a GPU; null if no node of the class has the label. */
  readonly leastMemory: LabeledMemory | null
  /** Name of a node whose GPUs are MIG slices or are shared; null if there is none. */
  readonly sharing: string | null
  /** The most GPUs that a node of the class has; null if none has any. */
  readonly mostGpus: number | null
}

export const noHardware: Hardware = { leastMemory: null, sharing: null, mostGpus: null }

const mib = 2 ** 20

/** The label with the memory of one GPU, or of one slice, in MiB. A shared GPU has the memory of the whole GPU. */
export const memoryLabel = (gpuResource: string): string => `${gpuResource.replace(/\.shared$/u, "")}.memory`

/** Reads the labels of the class's nodes. */
export const hardwareOf = (podClass: PodClass, nodes: ReadonlyArray<Node>): Hardware => {
  const { gpuResource } = podClass
  const own = nodes.filter((node) => hasLabels(podClass, node))
  const label = memoryLabel(gpuResource)
  const memories = own
    .map(({ metadata }) => ({ node: metadata.name, bytes: quantity(metadata.labels?.[label]) * mib }))
    .filter(({ bytes }) => bytes > 0)
    .sort((one, other) => one.bytes - other.bytes)
  const mostGpus = Math.max(0, ...own.map((node) => quantity(node.status?.allocatable?.[gpuResource])))
  return {
    leastMemory: memories[0] ?? null,
    sharing: own.find((node) => offersShares(gpuResource, node))?.metadata.name ?? null,
    mostGpus: mostGpus === 0 ? null : mostGpus
  }
}
