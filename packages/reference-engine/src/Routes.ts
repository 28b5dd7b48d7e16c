import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { chatDialect, type Dialect, textDialect } from "./Answers.ts"
import type { ChatMessage, ChatTemplate } from "./ChatTemplate.ts"
import { type Engine, encodePrompt, type Plan, understood } from "./Generation.ts"
import { ApiError, badRequest, ChatBody, CompletionBody, DetokenizeBody, decodeBody, type MessageBody, type SamplingBody, TokenizeBody } from "./Protocol.ts"
import { type Readers, reading } from "./reading.ts"
import type { Speech } from "./Speech.ts"
import { ThoughtReader, type ThoughtStart, thoughtStartOf } from "./ThoughtReader.ts"
import { ToolCallReader } from "./ToolCallReader.ts"
import { toolUseOf } from "./tools.ts"

/** One decoded request for choices. Only checks that need its own fields are done. */
export interface ChoicesRequest {
  readonly prefix: "chatcmpl-" | "cmpl-"
  readonly body: SamplingBody
  /** One plan per prompt. Each prompt is answered `n` times. */
  readonly plans: ReadonlyArray<Plan>
  /** Creates the dialect of a choice for a prompt. */
  readonly makeDialect: (prompt: number) => Dialect
  /** Whether reasoning is separated from the answer and counted. */
  readonly partsThought: boolean
}

/** A conversation that is ready to be answered. */
export interface Conversation {
  readonly plan: Plan
  /** Called for each answer. */
  readonly makeReaders: () => Readers
}

/**
 * Whether a request selects the adapter by its name. If the engine accepts any model name, the adapter's name follows a
 * colon.
 */
const asksForAdapter = ({ settings }: Engine, model: string | null | undefined): boolean => {
  const { adapter, anyModelName, servedModelNames } = settings
  if (model == null || (!anyModelName && servedModelNames.includes(model))) return false
  if (!anyModelName) {
    if (model === adapter?.name) return true
    throw new ApiError(404, "NotFoundError", `The model \`${model}\` does not exist.`, "model")
  }
  const adapterName = model.slice(model.indexOf(":") + 1).trim()
  if (!model.includes(":") || adapterName === "") return false
  if (adapterName === adapter?.name) return true
  throw badRequest(`Got LoRA adapter that has never been loaded: ${adapterName}.`, "model")
}

const anyObject = Schema.Record(Schema.String, Schema.Unknown)
const decodeObject = Schema.decodeUnknownOption(Schema.fromJsonString(anyObject))

/** A call in the form for templates: its arguments as an object instead of text. */
const pastCall = ({ function: { arguments: argumentsOfCall, name }, id, type }: NonNullable<MessageBody["tool_calls"]>[number]) => {
  const read = typeof argumentsOfCall === "string" ? Option.getOrNull(decodeObject(argumentsOfCall)) : argumentsOfCall
  if (read === null) throw badRequest("The arguments of a past tool call are no JSON object", "messages")
  return { id: id ?? "", type: type ?? "function", function: { name, arguments: read } }
}

const flattened = (messages: ReadonlyArray<MessageBody>): ReadonlyArray<ChatMessage> =>
  messages.map(({ content, name, role, tool_call_id, tool_calls }) => ({
    role,
    content: typeof content === "string" ? content : (content ?? []).map((part) => part.text).join("\n"),
    ...(tool_calls == null || tool_calls.length === 0 ? {} : { tool_calls: tool_calls.map(pastCall) }),
    ...(tool_call_id == null ? {} : { tool_call_id }),
    ...(name == null ? {} : { name })
  }))

const renderChat = (
  { seams }: Engine,
  template: ChatTemplate,
  messages: ReadonlyArray<MessageBody>,
  addGenerationPrompt: boolean,
  extra: Readonly<Record<string, unknown>> | null | undefined,
  tools: ReadonlyArray<unknown> | null
): string => {
  const rendered = template.render(flattened(messages), addGenerationPrompt, extra ?? {}, tools)
  if ("reason" in rendered) throw badRequest(rendered.reason, "messages")
  return seams.rendered?.(rendered.prompt) ?? rendered.prompt
}

/** How an answer to this conversation begins. The text that the template writes after the last message decides. */
const thoughtOf = (
  { thoughtMarks }: Engine,
  template: ChatTemplate,
  prompt: string,
  { add_generation_prompt, chat_template_kwargs, messages }: ChatBody,
  tools: ReadonlyArray<unknown> | null
): ThoughtStart | null => {
  if (thoughtMarks === null) return null
  if (add_generation_prompt === false) return "may_open"
  const turns = template.render(flattened(messages), false, chat_template_kwargs ?? {}, tools)
  return "prompt" in turns && prompt.startsWith(turns.prompt) ? thoughtStartOf(prompt.slice(turns.prompt.length)) : "may_open"
}

const spoiled = ({ seams }: Engine, ids: ReadonlyArray<number>, path: string) => seams.prompt?.(ids, path) ?? ids

/** Checks a conversation and renders its prompt. `path`: the path of the request. */
export const converse = (engine: Engine, template: ChatTemplate, speech: Speech, body: ChatBody, path: string): Conversation => {
  const adapted = asksForAdapter(engine, body.model)
  const wants = body.logprobs === true
  if (!wants && (body.top_logprobs ?? 0) > 0) throw badRequest("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")
  const use = understood("tools", () => toolUseOf(body, template.showsTools ? engine.settings.toolCalls : "refused"))
  const prompt = renderChat(engine, template, body.messages, body.add_generation_prompt ?? true, body.chat_template_kwargs, use.templateTools)
  const finish = use.namesFunction ? speech.finishOfNamedCall : "tool_calls"
  const thought = thoughtOf(engine, template, prompt, body, use.templateTools)
  const parted = engine.seams.thought === undefined ? thought : engine.seams.thought(thought, body.stream === true, path)
  return {
    makeReaders: () => ({
      thought: parted === null ? null : new ThoughtReader(parted),
      calls: use.most === 0 || engine.seams.readsCalls === false ? null : { reader: new ToolCallReader(use.most, speech.toolCallId), finish }
    }),
    plan: {
      adapted,
      prompt: spoiled(engine, encodePrompt(engine, prompt, false), path),
      grammar: use.grammar,
      thought,
      topLogprobs: wants ? (body.top_logprobs ?? 0) : null,
      defaultMaxTokens: null,
      requestedMaxTokens: body.max_completion_tokens ?? body.max_tokens ?? null
    }
  }
}

/** `POST /v1/chat/completions`. */
export const askChat = (engine: Engine, template: ChatTemplate, speech: Speech, text: string): ChoicesRequest => {
  const body = decodeBody(ChatBody, text)
  const { makeReaders, plan } = converse(engine, template, speech, body, "/v1/chat/completions")
  const partsThought = engine.thoughtMarks !== null
  const form = {
    withLogprobs: body.logprobs === true,
    withIds: body.return_token_ids === true,
    reasoningName: partsThought ? speech.reasoningName : null
  }
  return {
    prefix: "chatcmpl-",
    body,
    plans: [plan],
    makeDialect: () => chatDialect(engine.vocabulary, form, reading(makeReaders())),
    partsThought
  }
}

const promptsOf = (engine: Engine, prompt: CompletionBody["prompt"]): ReadonlyArray<ReadonlyArray<number>> => {
  if (typeof prompt === "string") return [encodePrompt(engine, prompt, true)]
  const ids: Array<number> = []
  const prompts: Array<ReadonlyArray<number>> = []
  for (const item of prompt) {
    if (typeof item === "string") prompts.push(encodePrompt(engine, item, true))
    else if (typeof item === "number") ids.push(item)
    else prompts.push(item)
  }
  return prompts.length === 0 ? [ids] : prompts
}

/** `POST /v1/completions`: prompts as text or token IDs. */
export const askText = (engine: Engine, text: string): ChoicesRequest => {
  const body = decodeBody(CompletionBody, text)
  const adapted = asksForAdapter(engine, body.model)
  if (body.suffix) throw badRequest("suffix is not currently supported", "suffix")
  const prompts = promptsOf(engine, body.prompt).map((prompt) => spoiled(engine, prompt, "/v1/completions"))
  return {
    prefix: "cmpl-",
    body,
    plans: prompts.map((prompt) => ({
      adapted,
      prompt,
      grammar: null,
      thought: null,
      topLogprobs: body.logprobs ?? null,
      defaultMaxTokens: 16,
      requestedMaxTokens: body.max_tokens ?? null
    })),
    partsThought: false,
    makeDialect: (prompt) => {
      const source = Array.isArray(body.prompt) ? body.prompt[prompt] : body.prompt
      const echo = body.echo !== true ? null : typeof source === "string" ? source : engine.vocabulary.decode(prompts[prompt] ?? [])
      return textDialect(engine.vocabulary, body.logprobs != null, body.return_token_ids === true, echo)
    }
  }
}

/** `POST /tokenize`: a text (with special tokens unless the request disables them) or a conversation (without). */
export const tokenize = (engine: Engine, template: ChatTemplate, text: string) => {
  const body = decodeBody(TokenizeBody, text)
  asksForAdapter(engine, body.model)
  const chat = "messages" in body
  const prompt = chat
    ? renderChat(engine, template, body.messages, body.add_generation_prompt ?? true, body.chat_template_kwargs, body.tools ?? null)
    : body.prompt
  const tokens = spoiled(engine, engine.vocabulary.encode(prompt, body.add_special_tokens ?? !chat), chat ? "/tokenize of messages" : "/tokenize")
  return {
    count: tokens.length,
    max_model_len: engine.maxModelLen,
    tokens,
    token_strs: body.return_token_strs === true ? tokens.map((id) => engine.vocabulary.pieceOf(id)) : null
  }
}

/** `POST /detokenize`. */
export const detokenize = (engine: Engine, text: string) => {
  const body = decodeBody(DetokenizeBody, text)
  asksForAdapter(engine, body.model)
  const outside = body.tokens.find((id) => id >= engine.vocabulary.size)
  if (outside !== undefined) throw badRequest(`Token id ${outside} is out of vocabulary`, "tokens")
  const prompt = engine.vocabulary.decode(body.tokens)
  return { prompt: engine.seams.detokenized?.(prompt) ?? prompt }
}
