import { readChatStream } from "@seatrial/client"
import { Receipt, RequestRecord } from "@seatrial/domain"
import { DemoError } from "./DemoError.ts"
import type { Product } from "./Product.ts"
import { bold, dim, heading, row, say } from "./Screen.ts"

/** Sends a chat request through the gateway and prints the answer as it arrives. Returns the request ID. */
export const showChat = async (product: Product, model: string, question: string): Promise<string> => {
  heading(`A streamed answer of ${model}`)
  say(`   ${dim("you")}    ${question}`)
  const response = await product.send("chat", "POST", "/v1/chat/completions", {
    model,
    stream: true,
    max_tokens: 48,
    temperature: 0,
    messages: [{ role: "user", content: question }]
  })
  const id = response.headers.get("x-request-id")
  if (!response.ok || response.body === null || id === null) {
    throw new DemoError("chat", `The gateway answered ${response.status}: ${(await response.text()).slice(0, 300)}`, `Read ${product.log}.`)
  }
  process.stdout.write(`   ${dim("model")}  `)
  let ended = false
  for await (const event of readChatStream(response.body)) {
    if (event._tag === "Ended") ended = true
    if (event._tag === "Text") process.stdout.write(event.text.replaceAll("\n", " "))
  }
  say()
  if (!ended) throw new DemoError("chat", "The stream broke off.", `Read ${product.log}.`)
  say(dim("          The sample model is tiny: it was trained to answer short questions, to count, sort, copy and look up, and knows little else."))
  return id
}

/** Prints the request's record and receipt, which show its usage and the revision that served it. */
export const showRecords = async (product: Product, id: string): Promise<void> => {
  heading("Its request record")
  const { body: record } = await product.call("request record", "GET", `/v1/requests/${id}`, RequestRecord)
  row("id", record.id)
  row("state", `${record.state}, status ${record.status_code}, finish ${record.finish_reason}`)
  row("tokens", `${record.input_tokens} in, ${record.output_tokens} out`)
  row("time", `first token ${record.ttft_ms?.toFixed(1)} ms, all ${record.latency_ms?.toFixed(1)} ms`)
  row("cost", `${record.cost_micros} micro-dollars ${dim("(own models bill GPU time, not tokens)")}`)
  if (record.receipt_url === null) throw new DemoError("receipt", "The request has no receipt.", "This is a bug in Seatrial: please report it.")

  heading(`Its receipt: what served it (${record.receipt_url})`)
  const { body: receipt } = await product.call("receipt", "GET", record.receipt_url, Receipt)
  row("model", receipt.model)
  row("weights", `commit ${receipt.hf_revision}`)
  row("configuration", receipt.config_revision ?? "-")
  row("engine", receipt.engine_version)
  const checks = receipt.verification?.checks ?? []
  row("verified by", `${checks.filter(({ passed }) => passed).length} of ${checks.length} checks passed`)
  const fingerprints = receipt.verification?.outputFingerprints ?? []
  row(
    "fingerprints",
    `${fingerprints.length} on ${receipt.verification?.fingerprintCard ?? "-"}${fingerprints[0] === undefined ? "" : `, first ${bold(fingerprints[0].sha256.slice(0, 16))}...`}`
  )
}
