import org.apache.axis.AxisFault;

/** A service of Axis 1.4. */
public class AxisShop {
    public int[] squares(int[] of) {
        int[] all = new int[of.length];
        for (int i = 0; i < of.length; i++) {
            all[i] = of[i] * of[i];
        }
        return all;
    }

    public Item find(Item like, int times) throws AxisFault {
        if (like.getName().equals("none")) {
            throw new AxisFault("no such item");
        }
        Item found = new Item();
        found.setName(like.getName() + " " + times);
        found.setPrice(like.getPrice());
        found.setOther(new Item[] {like, like});
        return found;
    }

    public static class Item {
        private String name;
        private java.math.BigDecimal price;
        private Item[] other;
        public String getName() { return name; }
        public void setName(String n) { name = n; }
        public java.math.BigDecimal getPrice() { return price; }
        public void setPrice(java.math.BigDecimal p) { price = p; }
        public Item[] getOther() { return other; }
        public void setOther(Item[] o) { other = o; }
    }
}
