export { computationProblem, referenceLimits } from "./limits.ts"
export { type RopeConfig, referenceRope } from "./rope.ts"
