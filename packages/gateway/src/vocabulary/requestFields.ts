import type { InferencePath, RequestField } from "@seatrial/domain"
import type { Refusal } from "../refusals.ts"
import type { Check } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

/** A path's own vocabulary: its top-level fields, each held to the table that catalogs are made from, and what holds between them. */
export interface Vocabulary<Path extends InferencePath> {
  readonly fields: Readonly<Record<RequestField<Path>, Check>>
  /** One of them is not enough by itself: the rules between fields, on what was checked of each. What is left in it goes to the engine. */
  readonly together: (body: Record<string, unknown>, at: Checking) => void
  readonly required: ReadonlyArray<RequestField<Path>>
  /** Real fields of this API that no model is served with. */
  readonly never?: ReadonlyArray<string>
  /** Of those, the ones that clients look for a refusal of their own for. */
  readonly refused?: ReadonlyMap<string, Refusal>
}

/** Real fields of OpenAI's older APIs that no model is served with, or not every one. */
const neverOnAny = new Set([
  ...["audio", "prediction", "web_search_options", "functions", "function_call", "moderation", "suffix"],
  ...["tools", "tool_choice", "parallel_tool_calls", "reasoning_effort", "chat_template_kwargs", "thinking_token_budget"]
])

/** Fields of the engines, which are in no API: they are known where a model is served with them, and nowhere else. */
const extensions = new Set(["top_k", "min_p", "repetition_penalty"])

const isEmptyObject = (value: unknown) => isMembers(value) && Object.keys(value).length === 0

/** The vendors' two ways to leave the choice of a tool to the model. */
const leavesChoice = (value: unknown): boolean => value === "auto" || (isMembers(value) && value.type === "auto" && value.disable_parallel_tool_use !== true)

/** Values that ask for nothing: clients send them to every model. */
const asksNothing = (name: string, value: unknown): boolean =>
  (name === "n" && value === 1) ||
  (name === "tools" && Array.isArray(value) && value.length === 0) ||
  (name === "logit_bias" && isEmptyObject(value)) ||
  (value === false && (name === "stream" || name === "logprobs" || name === "echo"))

/** The same of fields that the trial may take from a path: what is there without them is not refused to whoever says it. */
const saysWhatIs: Readonly<Record<string, (value: unknown, at: Checking) => boolean>> = {
  tool_choice: (value, at) => at.fields.has("tools") && leavesChoice(value),
  parallel_tool_calls: (value, at) => at.fields.has("tools") && value === true,
  thinking: (value) => isMembers(value) && value.type === "adaptive",
  output_config: (value) => isMembers(value) && value.effort == null && value.format == null,
  reasoning: (value) => isMembers(value) && value.effort == null,
  include: (value) => Array.isArray(value) && value.every((one) => one === "reasoning.encrypted_content")
}

/** Checks names first and values then; gives the body without what has no effect. */
export const checkFields = <Path extends InferencePath>({ fields, never = [], refused, required, together }: Vocabulary<Path>) => {
  const known = new Set([...neverOnAny, ...never])
  const checks = new Map<string, Check>(Object.entries<Check>(fields))
  return (given: Readonly<Record<string, unknown>>, at: Checking): Record<string, unknown> => {
    const names = Object.keys(given)
    for (const name of names) {
      const value = given[name]
      if (value === null || at.fields.has(name) || asksNothing(name, value)) continue
      if (checks.has(name) && Object.hasOwn(saysWhatIs, name) && saysWhatIs[name]?.(value, at) === true) continue
      const refusal = refused?.get(name)
      if (refusal !== undefined) throw refusal
      if (checks.has(name) ? !extensions.has(name) : known.has(name)) return at.unsupported(name)
      return at.unknown(name)
    }
    const body: Record<string, unknown> = {}
    for (const name of names) {
      const value = given[name]
      const check = value === null ? undefined : checks.get(name)
      const checked = check === undefined ? undefined : at.within(name, check, value)
      if (checked !== undefined) body[name] = checked
    }
    for (const name of required) if (given[name] == null) return at.invalid("is required", name)
    together(body, at)
    return body
  }
}
