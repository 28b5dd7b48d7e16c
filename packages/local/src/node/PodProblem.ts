import { Data } from "effect"

/** Why a container cannot be created yet. `reason` is the waiting reason that Kubernetes shows. */
export class PodProblem extends Data.TaggedError("PodProblem")<{
  readonly reason: "CreateContainerConfigError" | "CreateContainerError" | "ErrImagePull" | "RunContainerError"
  readonly message: string
}> {}
