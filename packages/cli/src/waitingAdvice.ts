/** Explains a phase that can take long and what to do, one sentence per line. Undefined for short phases. `id`: ID of the deployment. */
export const waitingAdvice = (phase: string, id: string): string | undefined => {
  const cancelHint = `To use other GPUs, cancel it with \`seatrial cancel ${id}\` and deploy again with --host-class (\`seatrial preview\` lists the classes that fit).`
  if (phase === "waiting") {
    return [
      "waiting: an older run of the model must end first, or the organization has reached its GPU limit.",
      "It continues automatically when that run ends, GPUs are released or an administrator raises the limit.",
      cancelHint
    ].join("\n")
  }
  if (phase !== "queued") return undefined
  return [
    "queued: no node has enough free GPUs of its host class, or the free GPUs are reserved or needed by earlier runs.",
    "A verified candidate of the model (serve: false) can hold GPUs for the hold_seconds of its deployment (default 900).",
    "It continues automatically when enough GPUs are free. The cluster administrator can add GPUs.",
    cancelHint
  ].join("\n")
}
