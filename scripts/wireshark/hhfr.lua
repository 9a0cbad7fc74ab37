-- Shows hhfr streams in Wireshark and tshark, frame by frame, with the field names of
-- docs/wire-format.md: over TCP, behind an HTTP upgrade, and in TLS with its keys. Copy it into the
-- folder of personal Lua plugins, or: tshark -X lua_script:hhfr.lua -r FILE -O hhfr
--
-- What a message says depends on shapes and memories, which are not followed here: `hhfr decode`
-- shows whole envelopes.
--
-- Filters: hhfr, hhfr.frame == "sync", hhfr.bits contains "reply", hhfr.lane == 3,
-- hhfr.session == ac:0f:…, hhfr.damaged

local hhfr = Proto("hhfr", "hhfr stream")

-- Frames have fields of these names; a test compares them with those of `hhfr decode -x`.
local NAMES = {
	uint = {
		"length", "scheme", "representation", "stages", "max fragment", "max message", "max shapes",
		"max shape octets", "max exchanges", "window", "max held", "lifetime", "abilities", "number", "total", "offset",
		"messages", "shapes", "lane", "lanes", "last request", "last reply", "open messages", "exchange", "octets",
		"place", "answers", "from", "length of the payload",
	},
	byte = { "role", "other", "form", "R", "code" },
	raw = {
		"session", "seed", "token", "sync word", "description", "of later versions", "own check", "fingerprint", "piece",
		"check", "name", "check so far", "what is done", "payload", "body",
	},
	text = { "target", "text" },
}

local function filter_name(name)
	return "hhfr." .. name:lower():gsub(" ", "_")
end

local fields = {
	frame = ProtoField.string("hhfr.frame", "frame"),
	mark = ProtoField.string("hhfr.mark", "mark"),
	kind = ProtoField.string("hhfr.kind", "kind"),
	bits = ProtoField.string("hhfr.bits", "bits"),
	rest = ProtoField.bytes("hhfr.unknown", "bytes that are no frame"),
}
local MAKERS = { uint = ProtoField.uint64, byte = ProtoField.uint8, raw = ProtoField.bytes, text = ProtoField.string }
for form, names in pairs(NAMES) do
	for _, name in ipairs(names) do
		fields[name] = MAKERS[form](filter_name(name), name)
	end
end
hhfr.fields = fields

local damaged = ProtoExpert.new("hhfr.damaged", "not a frame of hhfr", expert.group.MALFORMED, expert.severity.ERROR)
hhfr.experts = { damaged }

local HELLO_MARK = "01484846522f310a"
local SYNC_MARK = "03c5686866729a0a"
local MARK_LENGTH = 8

local KINDS = {
	[1] = "hello", [2] = "shape", [3] = "sync", [4] = "ack", [5] = "window", [6] = "cancel", [7] = "close",
	[8] = "idle", [9] = "flush", [10] = "kept", [11] = "resync",
}
local SKIPPED = { [4] = true, [8] = true, [10] = true, [11] = true } -- have the skip bit, always
local MAX_BODY, MAX_PAYLOAD = 65536, 16384

-- A cursor reads one frame. It raises "short" where bytes are missing, and "bad" for what is no
-- frame; a tree is there once the frame is known to be whole.
local Cursor = {}
Cursor.__index = Cursor

local function cursor(tvb, at, to, tree)
	return setmetatable({ tvb = tvb, at = at, to = to, tree = tree }, Cursor)
end

function Cursor:left()
	return self.to - self.at
end

function Cursor:take(n)
	if n > self:left() then
		error("short", 0)
	end
	local range = self.tvb(self.at, n)
	self.at = self.at + n
	return range
end

function Cursor:show(name, from, value)
	if self.tree and self.at > from then
		local range = self.tvb(from, self.at - from)
		if value == nil then
			self.tree:add(fields[name], range)
		else
			self.tree:add(fields[name], range, value)
		end
	end
end

-- uint reads an uvarint of at most ten octets, in its shortest form.
function Cursor:uint(name)
	local from, value = self.at, UInt64(0)
	for i = 0, 9 do
		local octet = self:take(1):uint()
		value = value:bor(UInt64(octet % 128):lshift(7 * i))
		if octet < 128 then
			if i > 0 and octet == 0 or i == 9 and octet > 1 then
				break
			end
			if name then
				self:show(name, from, value)
			end
			return value
		end
	end
	error("bad", 0)
end

-- count is an uint that is a number of octets, or of entries.
function Cursor:count(name, most)
	local value = self:uint(name)
	if value > UInt64(most) then
		error("bad", 0)
	end
	return value:tonumber()
end

function Cursor:byte(name)
	local from = self.at
	local value = self:take(1):uint()
	self:show(name, from, value)
	return value
end

function Cursor:raw(name, n)
	local from = self.at
	self:take(n)
	self:show(name, from)
end

-- counted is a length, and so many octets.
function Cursor:counted(name, most, text)
	local from = self.at
	local n = self:count(nil, most)
	local content = self:take(n)
	if text then
		self:show(name, from, n > 0 and content:string(ENC_UTF_8) or "")
	elseif self.tree and n > 0 then
		self.tree:add(fields[name], content)
	elseif self.tree then
		self.tree:add(fields[name], self.tvb(from, 1)):set_text(name)
	end
	return n
end

function Cursor:rest(name)
	self:raw(name, self:left())
end

local AMOUNTS = {
	"max fragment", "max message", "max shapes", "max shape octets", "max exchanges", "window", "max held", "lifetime",
}
local CHECK = 4

local function own_check(c)
	if c:left() > CHECK then
		c:raw("of later versions", c:left() - CHECK)
	end
	c:raw("own check", CHECK)
end

local function key(c)
	c:uint("lane")
	c:byte("R")
	c:uint("exchange")
end

local function octets_of(c)
	key(c)
	c:uint("octets")
end

local function list(c, name, least, entry)
	for _ = 1, c:count(name, math.floor(c:left() / least)) do
		entry(c)
	end
end

local BODIES = {}

function BODIES.hello(c)
	c:uint("scheme")
	local role = c:byte("role")
	if math.floor(role / 4) % 2 == 1 then -- the short form
		c:raw("seed", 8)
		c:counted("token", 16)
		c:uint("stages")
		c:uint("abilities")
		local other = c:byte("other")
		for i, name in ipairs(AMOUNTS) do
			if math.floor(other / 2 ^ (i - 1)) % 2 == 1 then
				c:uint(name)
			end
		end
		return own_check(c)
	end
	c:raw("session", 16)
	c:counted("token", 16)
	c:raw("sync word", 8)
	c:uint("representation")
	c:uint("stages")
	for _, name in ipairs(AMOUNTS) do
		c:uint(name)
	end
	c:counted("target", 2048, true)
	if c:left() > CHECK then
		c:counted("description", 8)
	end
	if c:left() > CHECK then
		c:uint("abilities")
	end
	own_check(c)
end

function BODIES.shape(c)
	c:uint("number")
	local form = c:byte("form")
	if form == 0 then
		c:raw("fingerprint", 32)
	elseif form == 1 then
		c:uint("total")
		c:uint("offset")
		c:rest("piece")
	end
end

function BODIES.sync(c)
	c:raw("sync word", 8)
	c:uint("offset")
	c:byte("R")
	c:raw("session", 16)
	c:uint("representation")
	c:uint("stages")
	c:uint("messages")
	c:raw("check", 4)
	list(c, "shapes", 9, function()
		c:uint("number")
		c:raw("name", 8)
	end)
	list(c, "lanes", 3, function()
		c:uint("lane")
		c:uint("last request")
		c:uint("last reply")
	end)
	list(c, "open messages", 7, function()
		key(c)
		c:raw("check so far", 4)
	end)
	c:raw("own check", CHECK)
end

function BODIES.ack(c)
	c:rest("what is done")
end

BODIES.window = octets_of
BODIES.flush = octets_of

function BODIES.cancel(c)
	key(c)
	c:byte("code")
	c:counted("text", 256, true)
end

function BODIES.close(c)
	c:byte("code")
	c:counted("text", 1024, true)
	c:uint("messages")
	c:raw("check", 4)
end

function BODIES.idle(c)
	list(c, "lanes", 1, function()
		c:uint("lane")
	end)
end

function BODIES.kept(c)
	while c:left() > 0 do
		c:uint("number")
		c:uint("octets")
	end
end

function BODIES.resync() end

-- data reads a data frame, and returns what its first octet says.
local function data(c)
	local from = c.at
	local octet = c:take(1)
	local function bit(n)
		return octet:bitfield(n, 1) == 1
	end
	local first, last, r, head, t = bit(1), bit(2), bit(3), bit(4), bit(5)
	local placed, interim = first and r and t, false
	if not first and bit(7) and not bit(6) then
		error("bad", 0)
	end
	local tree = c.tree
	c.tree = nil -- what the bits are is known behind the place
	local bits_end = c.at
	if bit(7) then c:uint() end
	if bit(6) then c:uint() end
	if placed then interim = c:uint() == UInt64(0) end
	c.at, c.tree = bits_end, tree
	local names = { "data" }
	for _, one in ipairs({
		{ first, "first" }, { last, "last" }, { r and (not placed or interim), "reply" }, { interim, "interim" },
		{ first and t and not interim, "one-way" }, { head, "head" }, { not first and t, "text" },
	}) do
		if one[1] then table.insert(names, one[2]) end
	end
	local said = table.concat(names, ", ")
	c:show("bits", from, said)
	if bit(7) then c:uint("lane") end
	if bit(6) then c:uint("exchange") end
	if placed then
		local place = c:uint("place")
		if place:band(1):tonumber() == 1 and c:uint("answers") == UInt64(0) then
			if c:uint("length") == UInt64(0) then error("bad", 0) end
			c:uint("from")
			c:uint("answers")
		end
	end
	local n = c:count("length of the payload", MAX_PAYLOAD)
	c:raw("payload", n)
	return said
end

local function begins_with(tvb, at, mark)
	local n = math.min(MARK_LENGTH, tvb:len() - at)
	return tvb(at, n):bytes():tohex():lower() == mark:sub(1, 2 * n)
end

-- following is where the next hello or sync begins, behind an offset.
local function following(tvb, at)
	if at >= tvb:len() then
		return nil
	end
	local hex = tvb(at):bytes():tohex():lower()
	local found
	for _, mark in ipairs({ HELLO_MARK, SYNC_MARK }) do
		local from = 3
		while true do
			local i = hex:find(mark, from, true)
			if not i then break end
			if i % 2 == 1 then
				found = math.min(found or i, i)
				break
			end
			from = i + 1
		end
	end
	return found and at + (found - 1) / 2
end

-- one reads the frame at an offset. It returns what it is, and where it ends.
local function one(tvb, at, tree)
	local first = tvb(at, 1):uint()
	local c = cursor(tvb, at, tvb:len(), tree)
	if first >= 128 then
		return data(c), c.at
	end
	local kind, skips = first % 64, first >= 64
	local name = KINDS[kind]
	if name and skips ~= (SKIPPED[kind] or false) or not name and not skips then
		error("bad", 0)
	end
	local mark = kind == 1 and HELLO_MARK or kind == 3 and SYNC_MARK
	if mark then
		if not begins_with(tvb, at, mark) then
			error("bad", 0)
		end
		c:take(MARK_LENGTH)
		c:show("mark", at, name)
	else
		c:take(1)
		c:show("kind", at, name or "unknown")
	end
	local size = c:count("length", MAX_BODY)
	if size > c:left() then
		error("short", 0)
	end
	c.to = c.at + size
	if not name then
		local sync = following(tvb, c.at) -- in what looks like a frame, as any text may
		if sync and sync < c.to then
			error("bad", 0)
		end
		c:rest("body")
	else
		BODIES[name](c)
	end
	if c:left() > 0 then
		error("bad", 0)
	end
	return name or "unknown", c.to
end

function hhfr.dissector(tvb, pinfo, root)
	pinfo.cols.protocol = "hhfr"
	local tree = root:add(hhfr, tvb())
	local at, said = 0, {}
	while at < tvb:len() do
		local ok, what, to = pcall(one, tvb, at)
		if ok then
			local branch = tree:add(fields.frame, tvb(at, to - at), what:match("^[^,]+"))
			one(tvb, at, branch)
			table.insert(said, what)
			at = to
		elseif what == "short" then
			pinfo.desegment_offset = at
			pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
			break
		elseif what == "bad" then
			to = following(tvb, at) or tvb:len()
			tree:add(fields.rest, tvb(at, to - at)):add_proto_expert_info(damaged)
			table.insert(said, "bytes that are no frame")
			at = to
		else
			error(what, 0)
		end
	end
	if #said > 0 then
		pinfo.cols.info = table.concat(said, " | ")
	end
	return tvb:len()
end

-- Streams are found by how they begin, and where they are joined by a sync.
hhfr:register_heuristic("tcp", function(tvb, pinfo, root)
	if tvb:len() < MARK_LENGTH then
		return false
	end
	local hex = tvb:bytes():tohex():lower()
	if hex:sub(1, 2 * MARK_LENGTH) ~= HELLO_MARK and not hex:find(SYNC_MARK, 1, true) then
		return false
	end
	pinfo.conversation = hhfr
	hhfr.dissector(tvb, pinfo, root)
	return true
end)

-- By default a port that some protocol has, as 8080, is that protocol's: what begins as hhfr is asked
-- first. It is Wireshark's preference "Try heuristic sub-dissectors first" of TCP.
if set_preference then
	set_preference("tcp.try_heuristic_first", true)
end

DissectorTable.get("tcp.port"):add_for_decode_as(hhfr)
for table_name, key_name in pairs({ ["http.upgrade"] = "hhfr/1", ["tls.alpn"] = "hhfr/1" }) do
	local ok, of = pcall(DissectorTable.get, table_name) -- older editions lack one
	if ok and of then
		of:add(key_name, hhfr)
	end
end
