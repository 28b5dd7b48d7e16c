import type { NamedFailure } from "@seatrial/domain"
import type { ObservedAttempts } from "../observation/ObservedPod.ts"
import { lastWords } from "./lastWords.ts"
import { type ContainerExit, type ContainerStatus, lastExit, millisOf } from "./podStatus.ts"

/** Exit code of a container for which another attempt cannot help. */
const finalExit = 3

/** The attempts of an init container. `describe`: the failure if the container reported no cause. */
export const observeAttempts = (container: ContainerStatus | undefined, describe: (exit: ContainerExit) => NamedFailure): ObservedAttempts => {
  const running = container?.state?.running !== undefined
  const exit = lastExit(container)
  const state = { running, done: container?.state?.terminated?.exitCode === 0, endedAt: millisOf(exit?.finishedAt) }
  if (container === undefined || exit === undefined || exit.exitCode === 0) return { ...state, failures: 0, failure: null, final: false }
  return {
    ...state,
    failures: container.restartCount + (running ? 0 : 1),
    failure: lastWords(exit.message ?? "") ?? describe(exit),
    final: exit.exitCode === finalExit
  }
}
