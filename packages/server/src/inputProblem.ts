import { type SchemaProblem, schemaProblem } from "@seatrial/domain"
import type { SchemaIssue } from "effect"

/** The problem of an invalid input. The schema of an empty input is a record of `Never`, so each of its members is reported as unknown. */
export const inputProblem = (issue: SchemaIssue.Issue): SchemaProblem => {
  const problem = schemaProblem(issue)
  return problem.message === "expected never" ? { ...problem, message: "is not a known member", unexpected: true } : problem
}
