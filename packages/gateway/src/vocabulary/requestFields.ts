import type { InferencePath, RequestField } from "@seatrial/domain"
import type { Refusal } from "../refusals.ts"
import type { Check } from "./Check.ts"
import type { Checking } from "./Checking.ts"
import { isMembers } from "./parseBody.ts"

/** The fields of one path. Catalogs are generated from the same field table. */
export interface Vocabulary<Path extends InferencePath> {
  readonly fields: Readonly<Record<RequestField<Path>, Check>>
  /** Checks rules between fields, on the checked values. What remains in `body` is sent to the engine. */
  readonly together: (body: Record<string, unknown>, at: Checking) => void
  readonly required: ReadonlyArray<RequestField<Path>>
  /** Fields of this API that no model supports. */
  readonly never?: ReadonlyArray<string>
  /** The fields of `never` for which clients expect a specific refusal. */
  readonly refused?: ReadonlyMap<string, Refusal>
}

/** Fields of OpenAI's older APIs that no model supports, or only some models. */
const neverOnAny = new Set([
  ...["audio", "prediction", "web_search_options", "functions", "function_call", "moderation", "suffix"],
  ...["tools", "tool_choice", "parallel_tool_calls", "reasoning_effort", "chat_template_kwargs", "thinking_token_budget"]
])

/** Fields of engines that no API has. They are unknown unless the model supports them. */
const extensions = new Set(["top_k", "min_p", "repetition_penalty"])

const isEmptyObject = (value: unknown) => isMembers(value) && Object.keys(value).length === 0

/** Both vendors' values that leave the choice of a tool to the model. */
const leavesChoice = (value: unknown): boolean => value === "auto" || (isMembers(value) && value.type === "auto" && value.disable_parallel_tool_use !== true)

/** Values without effect, which clients send to every model. */
const hasNoEffect = (name: string, value: unknown): boolean =>
  (name === "n" && value === 1) ||
  (name === "tools" && Array.isArray(value) && value.length === 0) ||
  (name === "logit_bias" && isEmptyObject(value)) ||
  (value === false && (name === "stream" || name === "logprobs" || name === "echo"))

/**
 * Values that match the default behavior. They are accepted even if the model does not support the field on this path.
 */
const matchesDefault: Readonly<Record<string, (value: unknown, at: Checking) => boolean>> = {
  tool_choice: (value, at) => at.fields.has("tools") && leavesChoice(value),
  parallel_tool_calls: (value, at) => at.fields.has("tools") && value === true,
  thinking: (value) => isMembers(value) && value.type === "adaptive",
  output_config: (value) => isMembers(value) && value.effort == null && value.format == null,
  reasoning: (value) => isMembers(value) && value.effort == null,
  include: (value) => Array.isArray(value) && value.every((one) => one === "reasoning.encrypted_content")
}

/** Whether the model must support a field for this value of it. */
const needsSupport = (name: string, value: unknown, at: Checking): boolean => value !== null && !at.fields.has(name) && !hasNoEffect(name, value)

const isDefault = (name: string, value: unknown, at: Checking): boolean => Object.hasOwn(matchesDefault, name) && matchesDefault[name]?.(value, at) === true

/** Checks the names first, then the values. Returns the body without members that have no effect. */
export const checkFields = <Path extends InferencePath>({ fields, never = [], refused, required, together }: Vocabulary<Path>) => {
  const known = new Set([...neverOnAny, ...never])
  const checks = new Map<string, Check>(Object.entries<Check>(fields))

  /** Refuses a field that the model does not support. */
  const refuse = (name: string, at: Checking): never => {
    const refusal = refused?.get(name)
    if (refusal !== undefined) throw refusal
    return (checks.has(name) ? !extensions.has(name) : known.has(name)) ? at.unsupported(name) : at.unknown(name)
  }

  const checkNames = (request: Readonly<Record<string, unknown>>, names: ReadonlyArray<string>, at: Checking): void => {
    for (const name of names) {
      const value = request[name]
      if (needsSupport(name, value, at) && !(checks.has(name) && isDefault(name, value, at))) refuse(name, at)
    }
  }

  const checkValues = (request: Readonly<Record<string, unknown>>, names: ReadonlyArray<string>, at: Checking): Record<string, unknown> => {
    const body: Record<string, unknown> = {}
    for (const name of names) {
      const value = request[name]
      const check = value === null ? undefined : checks.get(name)
      const checked = check === undefined ? undefined : at.within(name, check, value)
      if (checked !== undefined) body[name] = checked
    }
    return body
  }

  return (request: Readonly<Record<string, unknown>>, at: Checking): Record<string, unknown> => {
    const names = Object.keys(request)
    checkNames(request, names, at)
    const body = checkValues(request, names, at)
    for (const name of required) if (request[name] == null) return at.invalid("is required", name)
    together(body, at)
    return body
  }
}
