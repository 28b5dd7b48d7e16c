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

/** The error code of a response. Throws if it is not an error. */
export const codeOf = ({ text }: Answer): string => Schema.decodeUnknownSync(Failure)(text).error.code

/** The decoded body of a response. */
export const bodyOf = <A>(schema: Schema.Codec<A, unknown>, { text }: Answer): A => Schema.decodeUnknownSync(Schema.fromJsonString(schema))(text)

/** Calls the API and the gateway with a key. `call` returns every response unchanged, including errors. */
export const makeCaller = (address: string, key: string) => {
  const call = (method: "GET" | "POST" | "PUT", path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async (signal): Promise<Answer> => {
      const response = await fetch(`${address}${path}`, {
        method,
        signal,
        headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const answer = { status: response.status, headers: response.headers, text: await response.text() }
      // Responses of the API must conform to its document. The paths of the gateway are not part of it.
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
    /** Creates a deployment and returns the operation. Dies if the create is refused. */
    deploy: (input: unknown) =>
      Effect.map(call("POST", "/v1/deployments", input, { "idempotency-key": crypto.randomUUID() }), (answer) => {
        if (answer.status !== 201) throw new Error(`the create answered ${answer.status}: ${answer.text}`)
        return bodyOf(DeploymentOperation, answer)
      }),
    until: (id: string, what: string, holds: (detail: DeploymentDetail) => boolean) => eventually(`${id} ${what}`, deployment(id), holds),
    /** Waits until a run has ended, with any outcome. */
    finished: (id: string) => eventually(`${id} has ended`, deployment(id), ({ status }: Deployment) => isFinished(status))
  }
}
export type Caller = ReturnType<typeof makeCaller>
