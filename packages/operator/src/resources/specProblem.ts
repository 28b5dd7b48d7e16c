import { schemaProblem } from "@seatrial/domain"
import type { Schema } from "effect"

/** Which field of a specification cannot be read, and why. */
export const specProblem = ({ issue }: Schema.SchemaError): string => {
  const { message, param } = schemaProblem(issue)
  return `${param === null ? "spec" : `spec.${param}`} ${message}`
}
