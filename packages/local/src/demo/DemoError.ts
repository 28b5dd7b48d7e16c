/** A failed step of the demo: which step, why, and what to do. */
export class DemoError extends Error {
  readonly step: string
  readonly remedy: string

  constructor(step: string, message: string, remedy: string) {
    super(message)
    this.step = step
    this.remedy = remedy
  }
}
