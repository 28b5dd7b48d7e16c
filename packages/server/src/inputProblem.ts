import { type SchemaProblem, schemaProblem } from "@seatrial/domain"
import type { SchemaIssue } from "effect"

/** What was wrong with an input. Operations without any member of their own take a record of `Never`, so that there each member is an unknown one. */
export const inputProblem = (issue: SchemaIssue.Issue): SchemaProblem => {
  const problem = schemaProblem(issue)
  return problem.message === "expected never" ? { ...problem, message: "is not a known member", unexpected: true } : problem
}
