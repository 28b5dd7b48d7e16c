import type { Observation } from "./Observation.ts"

/** Whether the run's revision carries its model's traffic, or would if its engine existed. */
export const isServed = ({ run }: Pick<Observation, "run">): boolean =>
  run.phase === "activated" && run.revision?.status === "active" && !run.modelDisabled && !run.modelDeleted
