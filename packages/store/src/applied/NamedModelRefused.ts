import { Data } from "effect"

/** The model that an object names cannot be revised by it: the organisation has none of that id, it is of another repository, or another object stands for it. */
export class NamedModelRefused extends Data.TaggedError("NamedModelRefused")<{
  readonly why: "NotFound" | "OtherRepository" | "Applied"
  /** The model's repository, or `namespace/name` of the other object; empty where nothing is found. */
  readonly found: string
}> {}
