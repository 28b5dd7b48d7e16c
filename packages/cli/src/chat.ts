import { createInterface } from "node:readline/promises"
import { readChatStream, SeatrialClient } from "@seatrial/client"
import { CompletionFailure } from "@seatrial/domain"
import { Console, Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Access } from "./apiAccess.ts"
import { CommandError } from "./CommandError.ts"
import { textFlag } from "./listing.ts"
import { escapeUnsafe } from "./plainText.ts"
import { callableName, findModel } from "./references.ts"

interface Message {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

const decodeFailure = Schema.decodeUnknownOption(Schema.fromJsonString(CompletionFailure))

const unreadable = new CommandError({ message: "The response does not come from a Seatrial gateway. Check SEATRIAL_GATEWAY_ADDRESS.", exitCode: 4 })

/** Escapes control characters for a terminal, except line breaks and tabs. */
const safeText = (text: string) =>
  text
    .split(/(?<=[\n\t])|(?=[\n\t])/u)
    .map((part) => (part === "\n" || part === "\t" ? part : escapeUnsafe(part)))
    .join("")

const failureOf = (status: number, text: string) =>
  Option.match(decodeFailure(text), {
    onNone: () => new CommandError({ message: `The gateway returned status ${status}.`, exitCode: 4 }),
    onSome: ({ error }) => new CommandError({ message: error.code == null ? error.message : `${error.message} (${error.code})` })
  })

/** Writes each part of an answer as it arrives. Returns the complete answer. */
const readAnswer = async (body: ReadableStream<Uint8Array>, write: (text: string) => void): Promise<string> => {
  let answer = ""
  for await (const event of readChatStream(body)) {
    if (event._tag === "Unreadable") throw unreadable
    if (event._tag === "Failed") throw new CommandError({ message: event.message })
    if (event._tag === "Ended") continue
    answer += event.text
    write(safeText(event.text))
  }
  return answer
}

/** Requests one answer to a conversation and streams it to standard output. */
const answer = Effect.fnUntraced(function* (model: string, messages: ReadonlyArray<Message>) {
  const { gateway, key } = yield* Access
  const authorization = Option.match(key, { onNone: () => ({}), onSome: (secret) => ({ authorization: `Bearer ${Redacted.value(secret)}` }) })
  return yield* Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(`${gateway}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...authorization },
        body: JSON.stringify({ model, messages, stream: true }),
        signal
      })
      if (response.status !== 200 || response.body === null) throw failureOf(response.status, await response.text())
      const text = await readAnswer(response.body, (part) => void process.stdout.write(part))
      process.stdout.write("\n")
      return text
    },
    catch: (cause) =>
      cause instanceof CommandError ? cause : new CommandError({ message: `${gateway} does not answer. Check SEATRIAL_GATEWAY_ADDRESS.`, exitCode: 4 })
  })
})

/**
 * The callable name of a model reference. A name with an organization is used as is. A slug refers to the
 * organization's own model, otherwise to a published one.
 */
const resolveCallableName = Effect.fnUntraced(function* (reference: string) {
  if (reference.includes("/")) return reference
  if (reference.startsWith("mdl_")) return yield* callableName(yield* findModel(reference))
  const api = yield* SeatrialClient
  const own = yield* Effect.orElseSucceed(api.models.list(), () => [])
  return own.find(({ id }) => id.endsWith(`/${reference}`))?.id ?? reference
})

/** The text of standard input, if it is not a terminal. */
const readInput = Effect.promise(async () => {
  const parts: Array<Uint8Array> = []
  for await (const part of process.stdin) parts.push(Buffer.from(part))
  return Buffer.concat(parts).toString().trim()
})

const converse = Effect.fnUntraced(function* (model: string, system: ReadonlyArray<Message>) {
  yield* Console.error(`Chatting with ${model}. Enter an empty line or press Ctrl-D to end.`)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const messages = [...system]
  yield* Effect.gen(function* () {
    while (true) {
      const content = yield* Effect.promise((signal) => lines.question("> ", { signal }).catch(() => ""))
      if (content.trim() === "") return
      messages.push({ role: "user", content })
      const reply = yield* Effect.option(Effect.tapError(answer(model, messages), ({ message }) => Console.error(message)))
      if (Option.isSome(reply)) messages.push({ role: "assistant", content: reply.value })
      else messages.pop()
    }
  }).pipe(Effect.ensuring(Effect.sync(() => lines.close())))
})

export const chatCommand = Command.make(
  "chat",
  {
    model: Argument.String("model").pipe(Argument.withDescription("The model's name")),
    message: Flag.String("message").pipe(
      Flag.withDescription("Send one message and exit (default: a conversation in a terminal, otherwise standard input)"),
      Flag.optional
    ),
    system: textFlag("system", "Instructions that precede the conversation")
  },
  Effect.fn(function* ({ message, model: reference, system }) {
    const model = yield* resolveCallableName(reference)
    const before: ReadonlyArray<Message> = Option.isSome(system) ? [{ role: "system", content: system.value }] : []
    if (Option.isNone(message) && process.stdin.isTTY === true) return yield* converse(model, before)
    const content = Option.isSome(message) ? message.value : yield* readInput
    if (content === "") return yield* new CommandError({ message: "The message is empty. Set --message, or write it to standard input.", exitCode: 2 })
    yield* answer(model, [...before, { role: "user", content }])
  })
).pipe(
  Command.withDescription("Chats with a model through the gateway. Answers are streamed to standard output."),
  Command.withExamples([{ command: 'seatrial chat tiny-chat --message "Say hello."', description: "Send one message" }])
)
