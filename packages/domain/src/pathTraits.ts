import { type InferencePath, type RequestField, requestVocabulary } from "./requestVocabulary.ts"

interface PathTraits<Path extends InferencePath> {
  /** The field with the prompt. */
  readonly prompt: RequestField<Path>
  /** Whether that field is a conversation: each of its items is a message. */
  readonly isConversation: boolean
  /** The field with the system prompt; null if it is a message. */
  readonly instructions: RequestField<Path> | null
  /** Fields with the token limit of an answer. The first that is set applies. */
  readonly limits: ReadonlyArray<RequestField<Path>>
  /** Whether it has the form of Anthropic's API, with its errors and its header for keys. */
  readonly isAnthropic: boolean
  /** Whether a stream reports its usage only if `stream_options` asks for it. */
  readonly asksForUsage: boolean
  /** The path whose requests it counts; null if it generates an answer. */
  readonly countsFor: InferencePath | null
}

/** What the gateway must know about each inference path. */
export const pathTraits: { readonly [Path in InferencePath]: PathTraits<Path> } = {
  "/v1/chat/completions": {
    prompt: "messages",
    isConversation: true,
    instructions: null,
    limits: ["max_completion_tokens", "max_tokens"],
    isAnthropic: false,
    asksForUsage: true,
    countsFor: null
  },
  "/v1/completions": {
    prompt: "prompt",
    isConversation: false,
    instructions: null,
    limits: ["max_tokens"],
    isAnthropic: false,
    asksForUsage: true,
    countsFor: null
  },
  "/v1/responses": {
    prompt: "input",
    isConversation: true,
    instructions: "instructions",
    limits: ["max_output_tokens"],
    isAnthropic: false,
    asksForUsage: false,
    countsFor: null
  },
  "/v1/messages": {
    prompt: "messages",
    isConversation: true,
    instructions: "system",
    limits: ["max_tokens"],
    isAnthropic: true,
    asksForUsage: false,
    countsFor: null
  },
  "/v1/messages/count_tokens": {
    prompt: "messages",
    isConversation: true,
    instructions: "system",
    limits: [],
    isAnthropic: true,
    asksForUsage: false,
    countsFor: "/v1/messages"
  }
}

export const inferencePaths: ReadonlyArray<InferencePath> = Object.keys(requestVocabulary).filter((path): path is InferencePath =>
  Object.hasOwn(requestVocabulary, path)
)

const fieldsOf = (pick: (traits: PathTraits<InferencePath>) => ReadonlyArray<string | null>): ReadonlyArray<string> => [
  ...new Set(inferencePaths.flatMap((path) => pick(pathTraits[path])).filter((field) => field !== null))
]

/** Fields of all paths with a prompt, a conversation, a system prompt, and the token limit of an answer. */
export const promptFields = fieldsOf(({ prompt }) => [prompt])
export const conversationFields = fieldsOf(({ isConversation, prompt }) => (isConversation ? [prompt] : []))
export const instructionFields = fieldsOf(({ instructions }) => [instructions])
export const limitFields = fieldsOf(({ limits }) => limits)
