// Of is the slot of a name, as Redis Cluster has it: CRC16 of the name, or of its hash tag.

package slots

import "strings"

// Count is the number of slots: 0 … Count−1.
const Count = 16384

// polynomial is that of CRC-16/XMODEM, which Redis Cluster uses.
const polynomial = 0x1021

var crcs = crcTable()

func crcTable() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}

// Of is the slot of a name. Names with one hash tag, such as {order:7}:a and {order:7}:b,
// have one slot: that of what stands between the first { and the next }, unless it is empty.
func Of(name string) int {
	if _, rest, opened := strings.Cut(name, "{"); opened {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			name = tag
		}
	}
	var crc uint16
	for i := range len(name) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^name[i]]
	}
	return int(crc % Count)
}
