import { Data } from "effect"

/**
 * The object cannot use the model that it names: the organization has no such model, the model has another repository,
 * or another object uses it.
 */
export class NamedModelRefused extends Data.TaggedError("NamedModelRefused")<{
  readonly why: "NotFound" | "OtherRepository" | "Applied"
  /** The model's repository, or `namespace/name` of the other object; empty for `NotFound`. */
  readonly conflict: string
}> {}
