import { Data } from "effect"

/** Why a container cannot be made yet; `reason` is the one that Kubernetes shows as the waiting reason. */
export class PodProblem extends Data.TaggedError("PodProblem")<{
  readonly reason: "CreateContainerConfigError" | "CreateContainerError" | "ErrImagePull" | "RunContainerError"
  readonly message: string
}> {}
