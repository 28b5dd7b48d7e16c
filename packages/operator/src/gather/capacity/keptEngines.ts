import type { Run } from "@seatrial/store"

/**
 * How many of its engines above the first a model keeps if runs of other models need GPUs: those that its owner asked
 * for at least. An earlier revision keeps as many engines as the newer ones lack.
 */
export const keptEngines = ({ newer, replicas = 1, scaling }: Pick<Run, "newer" | "replicas" | "scaling">): number =>
  Math.max(0, (scaling?.minReplicas ?? replicas) - (newer?.length ?? 1))
