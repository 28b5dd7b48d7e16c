import { request as plain } from "node:http"
import { request as secure } from "node:https"
import { Context, Effect, Option, Schema } from "effect"

type Json = Schema.Json

export interface Reply {
  readonly status: number
  readonly body: Schema.JsonObject
}

export interface CallOptions {
  /** The media type of the body; JSON by default. */
  readonly type?: string
  readonly accept?: string
}

/** The address of an API server and the credentials of an administrator. */
export interface Access {
  readonly address: string
  readonly token: string
  readonly kubectl: (args: ReadonlyArray<string>, input?: string) => Effect.Effect<string>
}

/** One API server, the local cluster or a real one, as the contract asks it. */
export class KubeServer extends Context.Service<
  KubeServer,
  {
    readonly call: (method: string, path: string, body?: unknown, options?: CallOptions) => Effect.Effect<Reply>
    /** The events of a watch: the first `count`, or all if it ends before. */
    readonly events: (path: string, count: number, options?: CallOptions) => Effect.Effect<ReadonlyArray<Schema.JsonObject>>
    /** What it prints; dies with what it says on standard error. */
    readonly kubectl: Access["kubectl"]
  }
>()("seatrial/test/KubeServer") {}

/** A handler of a definition that is just going answers in plain text. */
const decodeText = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.JsonObject))

const decodeBody = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.JsonObject))

/** Speaks plain HTTP or TLS as the address says; a test's own server is not asked for a certificate that anybody signed. */
export const serverAt = ({ address, kubectl, token }: Access): KubeServer["Service"] => {
  const send = (method: string, path: string, body: unknown, options: CallOptions, enough: (text: string) => boolean) =>
    Effect.callback<{ readonly status: number; readonly text: string }, Error>((resume) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const open = address.startsWith("https:") ? secure : plain
      const request = open(`${address}${path}`, {
        method,
        rejectUnauthorized: false,
        headers: {
          authorization: `Bearer ${token}`,
          "user-agent": "contract/1.0",
          ...(options.accept === undefined ? {} : { accept: options.accept }),
          ...(body === undefined ? {} : { "content-type": options.type ?? "application/json" }),
          ...(text === undefined ? {} : { "content-length": Buffer.byteLength(text) })
        }
      })
      request.on("error", (error) => resume(Effect.fail(error)))
      request.on("response", (response) => {
        let received = ""
        const done = () => resume(Effect.succeed({ status: response.statusCode ?? 0, text: received }))
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => {
          received += chunk
          if (!enough(received)) return
          done()
          request.destroy()
        })
        response.on("end", done)
        response.on("error", done)
      })
      request.end(text)
      return Effect.sync(() => request.destroy())
    }).pipe(Effect.timeout("3 minutes"), Effect.orDie)
  return {
    kubectl,
    call: (method, path, body, options = {}) =>
      Effect.map(
        send(method, path, body, options, () => false),
        ({ status, text }) => ({ status, body: Option.getOrElse(decodeText(text), () => ({ message: text })) })
      ),
    events: (path, count, options = {}) => {
      const completeLines = (text: string) => text.split("\n").slice(0, -1)
      return Effect.map(
        send("GET", path, undefined, options, (text) => completeLines(text).length >= count),
        ({ text }) =>
          completeLines(text)
            .slice(0, count)
            .map((line) => decodeBody(line))
      )
    }
  }
}

/** The value at a dotted path; numbers are list positions, `\.` is a dot within a name. */
export const at = (value: Json | undefined, path: string): Json | undefined =>
  path
    .split(/(?<!\\)\./)
    .map((step) => step.replaceAll("\\.", "."))
    .reduce<Json | undefined>((here, step) => {
      if (here === null || typeof here !== "object") return undefined
      return Object.entries(here).find(([name]) => name === step)?.[1]
    }, value)

/** The value at a path of every element. */
export const each = (value: Json | undefined, path: string): ReadonlyArray<Json | undefined> =>
  Array.isArray(value) ? value.map((one: Json) => at(one, path)) : []

/** Looks until it holds, for three minutes. */
export const eventually = <A>(look: Effect.Effect<A, never, KubeServer>, holds: (observed: A) => boolean): Effect.Effect<A, never, KubeServer> =>
  Effect.suspend(() => {
    let last: A | undefined
    return Effect.gen(function* () {
      while (true) {
        const observed = yield* look
        last = observed
        if (holds(observed)) return observed
        yield* Effect.sleep("50 millis")
      }
    }).pipe(Effect.timeoutOrElse({ duration: "3 minutes", orElse: () => Effect.die(new Error(`not after three minutes; last seen: ${JSON.stringify(last)}`)) }))
  })
