import { Schema } from "effect"

const text = (description: string) => Schema.String.annotate({ description })

/** A Kubernetes condition. */
export const Condition = Schema.Struct({
  type: text("Type of the condition."),
  status: Schema.Literals(["True", "False", "Unknown"]).annotate({ description: "Whether the condition holds." }),
  reason: text("Machine-readable reason for the last transition."),
  message: text("Human-readable details."),
  lastTransitionTime: Schema.String.annotate({ description: "When the status last changed.", format: "date-time" }),
  observedGeneration: Schema.optionalKey(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description: "Generation of the specification that the condition describes." })
  )
})
export type Condition = typeof Condition.Type

/** The generation of a specification that a status describes. */
export const observedGeneration = (description: string) =>
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1)).annotate({ description: `${description} -1 before the operator has seen the object.` })
