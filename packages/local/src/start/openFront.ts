import type { IncomingMessage, RequestListener } from "node:http"
import { Gateway, isGatewayPath, listen } from "@seatrial/gateway"
import { defaultClientTimeouts, makeNodeServer, makeRequestListener } from "@seatrial/server"
import { Console, Duration, Effect } from "effect"

/** The same timeout as the gateway: an answer that is not streamed may be silent for ten minutes. */
const timeouts = { ...defaultClientTimeouts, stalled: Duration.minutes(11) }

/** Listens on the wanted port, or on a free one if it is in use. */
const listenNear = (handler: RequestListener, port: number) => {
  const options = { host: "127.0.0.1", grace: 3_000 }
  const open = (wanted: number) => listen(handler, { ...options, port: wanted, server: makeNodeServer(timeouts) })
  return open(port).pipe(
    Effect.catchIf(
      (error) => error.taken,
      () => Effect.tap(open(0), (free) => Console.log(`Port ${port} is in use, using ${free}.`))
    )
  )
}

/** The method that selects the program. For a CORS preflight this is the requested method. */
const methodOf = ({ headers, method }: IncomingMessage) => (method === "OPTIONS" ? (headers["access-control-request-method"] ?? method) : method)

/**
 * Serves API and gateway at one address. The gateway gets the paths of inference and of single models, the API gets all
 * others.
 */
export const openFront = Effect.fn("openFront")(function* (port: number, programs: { readonly server: boolean; readonly gateway: boolean }) {
  const nothing: RequestListener = (_, response) => {
    response.writeHead(503, { "content-type": "text/plain" }).end("This program is not running here: see SEATRIAL_PROGRAMS.\n")
  }
  const server = programs.server ? yield* makeRequestListener : nothing
  const gateway = programs.gateway ? (yield* Gateway).handler : nothing
  return yield* listenNear((request, response) => (isGatewayPath(request.url, methodOf(request)) ? gateway : server)(request, response), port)
})
