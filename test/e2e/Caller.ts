import { type Deployment, DeploymentDetail, DeploymentOperation, isFinished } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { assertConforms, isDocumented } from "../../packages/server/test/conformance.ts"
import { eventually } from "./eventually.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const Failure = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ type: Schema.String, code: Schema.String, message: Schema.String }) }))

/** The code of an answer that is an error; dies where it is none. */
export const codeOf = ({ text }: Answer): string => Schema.decodeUnknownSync(Failure)(text).error.code

/** An answer's body. */
export const bodyOf = <A>(schema: Schema.Codec<A, unknown>, { text }: Answer): A => Schema.decodeUnknownSync(Schema.fromJsonString(schema))(text)

/** The HTTP interface as the holder of a key sees it: every answer comes back as it is, errors too. */
export const makeCaller = (address: string, key: string) => {
  const call = (method: "GET" | "POST", path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async (signal): Promise<Answer> => {
      const response = await fetch(`${address}${path}`, {
        method,
        signal,
        headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const answer = { status: response.status, headers: response.headers, text: await response.text() }
      // The API's answers have to be what its document says; the gateway has paths of its own.
      if (isDocumented(path)) assertConforms(method, path, { ...answer, headers: Object.fromEntries(response.headers) })
      return answer
    })
  const read = <A>(path: string, schema: Schema.Codec<A, unknown>) =>
    Effect.map(call("GET", path), (answer) => {
      if (answer.status !== 200) throw new Error(`GET ${path} answered ${answer.status}: ${answer.text}`)
      return bodyOf(schema, answer)
    })
  const deployment = (id: string) => read(`/v1/org/deployments/${id}`, DeploymentDetail)
  return {
    call,
    read,
    deployment,
    /** Creates a deployment and gives the operation; dies where it was refused. */
    deploy: (input: unknown) =>
      Effect.map(call("POST", "/v1/deployments", input, { "idempotency-key": crypto.randomUUID() }), (answer) => {
        if (answer.status !== 201) throw new Error(`the create answered ${answer.status}: ${answer.text}`)
        return bodyOf(DeploymentOperation, answer)
      }),
    until: (id: string, what: string, holds: (seen: DeploymentDetail) => boolean) => eventually(`${id} ${what}`, deployment(id), holds),
    /** Waits until a run is over, however it ended. */
    finished: (id: string) => eventually(`${id} is over`, deployment(id), ({ status }: Deployment) => isFinished(status))
  }
}
export type Caller = ReturnType<typeof makeCaller>
