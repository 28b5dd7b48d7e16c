import { Schema } from "effect"

const text = (description: string) => Schema.String.annotate({ description })

/** A Kubernetes condition. */
export const Condition = Schema.Struct({
  type: text("What is told of."),
  status: Schema.Literals(["True", "False", "Unknown"]).annotate({ description: "Whether the condition holds." }),
  reason: text("One word for the state, for programs."),
  message: text("What is so, and why, for people."),
  lastTransitionTime: Schema.String.annotate({ description: "When the status last changed.", format: "date-time" }),
  observedGeneration: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description: "The generation of the specification that this was said of." })
  )
})
export type Condition = typeof Condition.Type
