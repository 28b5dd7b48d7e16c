import { execFile } from "node:child_process"
import { request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { connect } from "node:net"
import { Data, Effect } from "effect"
import type { Container, Probe } from "./PodObject.ts"

export class ProbeFailure extends Data.TaggedError("ProbeFailure")<{ readonly message: string }> {}

export interface ProbeTarget {
  readonly container: Container
  readonly podIP: string
  /** Translates the words of an exec probe to local paths. */
  readonly words: (command: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>>
  readonly workingDirectory: string
}

const portOf = (container: Container, port: number | string): number | undefined =>
  typeof port === "number" ? port : (container.ports?.find(({ name }) => name === port)?.containerPort ?? (/^\d+$/.test(port) ? Number(port) : undefined))

type HttpGet = NonNullable<Probe["httpGet"]>

const httpGet = (target: ProbeTarget, probe: HttpGet, port: number) =>
  Effect.callback<void, ProbeFailure>((resume) => {
    const secure = probe.scheme?.toUpperCase() === "HTTPS"
    const headers = Object.fromEntries((probe.httpHeaders ?? []).map(({ name, value }) => [name, value]))
    const options = {
      host: probe.host ?? target.podIP,
      port,
      path: probe.path ?? "/",
      agent: false,
      headers: { "user-agent": "seatrial-node-agent", accept: "*/*", connection: "close", ...headers }
    }
    const request = secure ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options)
    request.once("response", (response) => {
      response.resume()
      const status = response.statusCode ?? 0
      // The status decides, so the body is not read.
      request.destroy()
      resume(status >= 200 && status < 400 ? Effect.void : Effect.fail(new ProbeFailure({ message: `HTTP probe failed with statuscode: ${status}` })))
    })
    request.once("error", (cause) => resume(Effect.fail(new ProbeFailure({ message: `Get "${options.path}": ${cause.message}` }))))
    request.end()
    return Effect.sync(() => request.destroy())
  })

const tcpSocket = (host: string, port: number) =>
  Effect.callback<void, ProbeFailure>((resume) => {
    const socket = connect({ host, port })
    socket.once("connect", () => {
      socket.destroy()
      resume(Effect.void)
    })
    socket.once("error", (cause) => resume(Effect.fail(new ProbeFailure({ message: `dial tcp ${host}:${port}: ${cause.message}` }))))
    return Effect.sync(() => socket.destroy())
  })

/** Runs words as a process of the container and fails if its exit code is not 0. Interrupting it ends the process. */
export const execute = (target: ProbeTarget, command: ReadonlyArray<string>): Effect.Effect<void, ProbeFailure> =>
  Effect.callback<void, ProbeFailure>((resume) => {
    const [program = "", ...args] = target.words(command)
    const child = execFile(
      program,
      args,
      { cwd: target.workingDirectory, env: target.environment, maxBuffer: 65_536, killSignal: "SIGKILL" },
      (cause, stdout, stderr) => {
        if (cause === null) return resume(Effect.void)
        resume(
          Effect.fail(new ProbeFailure({ message: `${cause.code === undefined ? cause.message : `exit ${cause.code}`}: ${(stdout + stderr).slice(-500)}` }))
        )
      }
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** One attempt of a probe within its `timeoutSeconds` (default 1). */
export const checkProbe = (target: ProbeTarget, probe: Probe): Effect.Effect<void, ProbeFailure> => {
  const seconds = probe.timeoutSeconds ?? 1
  const within = Effect.timeoutOrElse({
    duration: `${seconds} seconds`,
    orElse: () => Effect.fail(new ProbeFailure({ message: `no answer within ${seconds} s` }))
  })
  if (probe.exec !== undefined) return within(execute(target, probe.exec.command ?? []))
  const probePort = probe.httpGet?.port ?? probe.tcpSocket?.port
  const port = probePort === undefined ? undefined : portOf(target.container, probePort)
  if (port === undefined)
    return Effect.fail(
      new ProbeFailure({ message: probePort === undefined ? "the probe has no handler that this node knows" : `no port is named ${probePort}` })
    )
  return within(probe.httpGet === undefined ? tcpSocket(probe.tcpSocket?.host ?? target.podIP, port) : httpGet(target, probe.httpGet, port))
}
