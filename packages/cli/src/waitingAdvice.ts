/**
 * Explains a phase that can take long and what to do, one sentence per line. Undefined for short phases. `id`: ID of
 * the deployment.
 */
export const waitingAdvice = (phase: string, id: string): string | undefined => {
  const cancelHint = `To use other GPUs, cancel this deployment with \`seatrial cancel ${id}\` and deploy again with --host-class (\`seatrial preview\` lists the classes that fit).`
  if (phase === "waiting") {
    return [
      "waiting: an older deployment of the model must end first, or the organization has reached its GPU limit.",
      "This deployment continues automatically when the older one ends, GPUs are released or an administrator raises the limit.",
      cancelHint
    ].join("\n")
  }
  if (phase !== "queued") return undefined
  return [
    "queued: no node of the host class has enough free GPUs, or the free GPUs are reserved or needed by earlier deployments.",
    "A verified candidate of the same model (serve: false) can hold GPUs until its hold_seconds end (default 900).",
    "This deployment continues automatically when enough GPUs are free. The cluster administrator can add GPUs.",
    cancelHint
  ].join("\n")
}
