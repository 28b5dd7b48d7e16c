import { registerHooks } from "node:module"

/** Globals that reach the network or other code without an import. */
const openings = ["fetch", "WebSocket", "EventSource", "Worker", "WebAssembly"] as const

/**
 * Removes network access and further module loading from this process, which then reads untrusted files. Node's
 * permission model, under which it runs, does not restrict connections. Afterwards no code can import a module or
 * compile a text (`--disallow-code-generation-from-strings`). This does not cover a fault of V8 itself; the
 * NetworkPolicy of the pod does.
 */
export const confineProcess = (): void => {
  registerHooks({
    resolve: (specifier) => {
      throw new Error(`${specifier} may not be loaded here`)
    }
  })
  for (const name of openings) Reflect.deleteProperty(globalThis, name)
  for (const name of ["getBuiltinModule", "binding", "dlopen", "_linkedBinding"]) Reflect.deleteProperty(process, name)
}
