import { Option } from "effect"
import { type Hardware, memoryLabel } from "../gather/capacity/hardware.ts"
import { toPodClass } from "../resources/PodClass.ts"
import type { WatchedHostClass } from "../resources/WatchedHostClass.ts"

interface Verdict {
  readonly status: "True" | "False" | "Unknown"
  readonly reason: string
  readonly message: string
}

/** Whether the nodes of the class have the GPUs that it describes. */
export const hardwareVerdict = (object: WatchedHostClass, { leastMemory, mostGpus, sharing }: Hardware): Verdict => {
  const podClass = Option.getOrNull(toPodClass(object))
  if (podClass === null) return { status: "Unknown", reason: "NotAccepted", message: "The specification cannot be read." }
  const { gpu_count, gpu_memory_bytes } = podClass.hostClass
  if (gpu_count > 1 && sharing !== null) {
    const message = `The GPUs of the node ${sharing} are MIG slices or are shared. An engine of this class needs several whole GPUs, so the class does not use this node. Create a HostClass with gpuCount: 1 for the node, or exclude the node with nodeSelector.`
    return { status: "False", reason: "SharedGpus", message }
  }
  if (mostGpus !== null && gpu_count > mostGpus && !podClass.autoscaling) {
    const message = `An engine of this class needs ${gpu_count} GPUs of one node, but no node of the class has more than ${mostGpus}. Set gpuCount to at most ${mostGpus}, or add a node.`
    return { status: "False", reason: "TooFewGpus", message }
  }
  const label = memoryLabel(podClass.gpuResource)
  if (leastMemory === null)
    return { status: "Unknown", reason: "NotReported", message: `No node of the class has the label ${label}, which GPU Feature Discovery sets.` }
  const { bytes, node } = leastMemory
  if (gpu_memory_bytes > bytes) {
    const message = `gpuMemoryBytes is ${gpu_memory_bytes}, but a GPU of the node ${node} has ${bytes} bytes (label ${label}): engines may run out of memory. Set gpuMemoryBytes to at most ${bytes}, or exclude the node with nodeSelector.`
    return { status: "False", reason: "MemoryTooLarge", message }
  }
  return { status: "True", reason: "Matches", message: `Every GPU has at least the memory of gpuMemoryBytes; the smallest has ${bytes} bytes.` }
}
