import type { Node } from "@seatrial/kube"
import type { PodClass } from "../../resources/PodClass.ts"
import type { GpuUsage } from "./GpuUsage.ts"
import { accepts, closedBy, hasLabels, offeredGpus } from "./nodeFit.ts"
import type { Taken } from "./takenGpus.ts"

/** The engines of a class for which each node has room. `stale` lists the nodes to compute again. */
interface Room {
  readonly podClass: PodClass
  readonly slots: Map<string, number>
  readonly stale: Set<string>
  total: number
}

/** The room for engines on nodes, computed again only for nodes that have changed. */
export const makeNodeRoom = (nodes: ReadonlyMap<string, Node>, usage: GpuUsage) => {
  const rooms = new Map<string, Room>()
  /** Engines of the class for which the node has room if `freed` more GPUs become free. */
  const slotsOn = (podClass: PodClass, name: string, freed: number): number => {
    const node = nodes.get(name)
    if (node === undefined || !accepts(podClass, node)) return 0
    const free = offeredGpus(podClass, node) - usage.onNode(podClass, name) + freed
    return Math.max(0, Math.floor(free / podClass.hostClass.gpu_count))
  }
  /** The same if the pod did not exist. */
  const slotsWithout = (podClass: PodClass, { amounts }: Taken, node: string): number => slotsOn(podClass, node, amounts.get(podClass.gpuResource) ?? 0)
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
  return {
    /** The node, or what pods take of it, has changed. */
    spoil: (node: string | undefined): void => {
      if (node !== undefined) for (const { stale } of rooms.values()) stale.add(node)
    },
    /** Engines of the class for which one node has enough free GPUs. */
    freeSlots: (podClass: PodClass, except: string): number => {
      const room = roomFor(podClass)
      const free = room.total - usage.unplaced(podClass, except)
      const own = usage.takenOf(except)
      return own?.node === undefined ? free : free + slotsWithout(podClass, own, own.node) - (room.slots.get(own.node) ?? 0)
    },
    /** Why an engine of the class could not take the place of the pod `holder`; null if it could. */
    noPlaceOf: (podClass: PodClass, holder: string): string | null => {
      const taken = usage.takenOf(holder)
      const node = taken?.node === undefined ? undefined : nodes.get(taken.node)
      if (taken === undefined || node === undefined) return "it has no node"
      if (!hasLabels(podClass, node)) return "its node does not have the class's labels"
      const closed = closedBy(podClass, node)
      if (closed !== null) return `its node takes no new pods (${closed})`
      return slotsWithout(podClass, taken, node.metadata.name) > 0 ? null : `its node would not have enough ${podClass.gpuResource}`
    }
  }
}
